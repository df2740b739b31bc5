"""An agent: a model writes a program; when the program fails, the model sees why and may try again.

Material from `--knowledge` goes into the prompt. The agent uses only the standard library.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path


def ask(messages: list[dict[str, str]]) -> str:
    body = json.dumps({"model": os.environ["MLEBENCH_MODEL"], "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


texts = [Path(os.environ["INSTRUCTIONS"]), Path(os.environ["DATA_DIR"], "description.md")]
texts += sorted(Path.home().glob("knowledge/*.md"))
question = "\n\n".join(path.read_text() for path in texts) + "\n\nAnswer with one Python program, in a code block."
messages = [{"role": "user", "content": question}]
program = Path(os.environ["CODE_DIR"], "program.py")

for _ in range(int(sys.argv[sys.argv.index("--tries") + 1])):
    reply = ask(messages)
    block = re.search(r"```python\n(.*?)```", reply, re.DOTALL)
    program.write_text(block[1] if block else "raise SystemExit('There is no program in the answer.')")
    done = subprocess.run(["python3", program], stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        break
    print(done.stderr, flush=True)
    messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": f"It failed:\n{done.stderr}"}]
