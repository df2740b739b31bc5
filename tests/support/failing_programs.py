# ruff: noqa: E501 the programs are as agents would write them
"""Tiny agents that fail, or do well, in a known way. `failed_runs.py` runs them; each outcome is known beforehand.

A program is Python, unless it begins with `#!bash`. All of them can `import model`: honest predictions for the twins.
"""

from dataclasses import dataclass

TITANIC, PIZZA, TAXI = "spaceship-titanic", "random-acts-of-pizza", "new-york-city-taxi-fare-prediction"
BY_SCORE = "by_score"  # a medal, above or below the median: whatever the thresholds say


@dataclass(frozen=True)
class Case:
    name: str
    competition: str
    category: str
    program: str
    cause: str | None = None
    also: tuple[str, ...] = ()
    sealed: bool = False  # in bubblewrap, where limits and the missing network are real


MODEL = """
import csv, json, math, os, random
DATA, OUT, LOGS = (os.environ[name] for name in ("DATA_DIR", "SUBMISSION_DIR", "LOGS_DIR"))

def rows(name):
    with open(f"{DATA}/{name}", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))

def write(header, pairs, name="submission.csv", folder=OUT):
    with open(f"{folder}/{name}", "w", newline="") as file:
        csv.writer(file).writerows([header, *pairs])

def titanic():
    return [(r["PassengerId"], not (r["CryoSleep"] != "True" and float(r["Spa"] or 0) > 250)) for r in rows("test.csv")]

def pizza(giver=0):
    hard = ("hungry", "job", "rent", "fridge")
    found = json.load(open(f"{DATA}/test.json", encoding="utf-8"))
    return [(r["request_id"], min(0.99, 0.1 + giver * (r["giver_username_if_known"] != "N/A") + 0.5 * any(w in r["request_text_edit_aware"] for w in hard)
             + 0.2 * (r["requester_number_of_comments_at_request"] > 100)
             + r["requester_number_of_comments_at_request"] / 1e6)) for r in found]

def pizza_with_giver():
    return pizza(0.8)

def taxi():
    def fare(r):
        x1, y1, x2, y2 = (float(r[f"{end}_{axis}"] or 0) for end in ("pickup", "dropoff") for axis in ("longitude", "latitude"))
        far = math.hypot((x2 - x1) * 84.3, (y2 - y1) * 111.2)
        return 2.5 + 1.6 * (far if 0 < far < 60 else 3)
    return [(r["key"], round(fare(r), 3)) for r in rows("test.csv")]

HEADERS = {titanic: ["PassengerId", "Transported"], pizza: ["request_id", "requester_received_pizza"],
           pizza_with_giver: ["request_id", "requester_received_pizza"], taxi: ["key", "fare_amount"]}

def submit(made, change=lambda value: value):
    write(HEADERS[made], [(id, change(value)) for id, value in made()])

def told(**line):
    import time
    with open(f"{LOGS}/trajectory.jsonl", "a") as file:
        file.write(json.dumps({"time": time.time(), **line}) + "\\n")
"""

CASES = [
    # Code that crashed
    Case("missing-module", TITANIC, "crashed", "import lightgbm as lgb", "missing_package"),
    Case("missing-name", TITANIC, "crashed", "from sklearn.externals import joblib", "missing_package"),
    Case(
        "missing-optional",
        TITANIC,
        "crashed",
        "import pandas as pd\nprint('reading')\npd.read_excel('x.xlsx')",
        "missing_package",
    ),
    Case(
        "missing-program",
        TITANIC,
        "crashed",
        "#!bash\nset -e\necho starting\nautogluon-train --data $DATA_DIR",
        "missing_package",
    ),
    Case(
        "missing-in-notebook",
        PIZZA,
        "crashed",
        r"""
print("Executing notebook")
print("\x1b[0;31m" + "-" * 75 + "\x1b[0m")
print("\x1b[0;31mModuleNotFoundError\x1b[0m                       Traceback (most recent call last)")
print("Cell \x1b[0;32mIn[3], line 2\x1b[0m\n\x1b[1;32m      1\x1b[0m \x1b[38;5;28;01mimport\x1b[39;00m pandas")
print("\x1b[0;32m----> 2\x1b[0m import catboost\n")
print("\x1b[0;31mModuleNotFoundError\x1b[0m: No module named 'catboost'")
""",
        "missing_package",
    ),
    Case("wrong-path", TITANIC, "crashed", "open('/kaggle/input/spaceship-titanic/train.csv')", "wrong_path"),
    Case(
        "wrong-path-pandas",
        TAXI,
        "crashed",
        "import os, pandas as pd\npd.read_csv(os.environ['DATA_DIR'] + '/train.csv')",
        "wrong_path",
    ),
    Case(
        "read-only",
        TITANIC,
        "crashed",
        "import os\nopen(os.environ['DATA_DIR'] + '/features.csv', 'w')",
        "wrong_path",
        sealed=True,
    ),
    Case("folder-as-file", PIZZA, "crashed", "import os\nopen(os.environ['DATA_DIR'])", "wrong_path"),
    Case("no-such-script", PIZZA, "crashed", "#!bash\npython3 /home/code/train_model.py", "wrong_path", sealed=True),
    Case(
        "raised-from",
        TITANIC,
        "crashed",
        """
def load():
    return open("input/train.csv")
try:
    load()
except OSError as error:
    raise RuntimeError("training failed") from error
""",
        "wrong_path",
    ),
    Case(
        "ranks",
        PIZZA,
        "crashed",
        """
import traceback, sys, random
texts = []
for rank in range(3):
    try:
        open(f"/mnt/shards/{rank}.bin")
    except OSError:
        texts.append([f"[rank{rank}]: {line}" for line in traceback.format_exc().splitlines()])
random.seed(1)
while any(texts):
    one = random.choice([text for text in texts if text])
    print(one.pop(0))
sys.exit(1)
""",
        "wrong_path",
    ),
    Case(
        "column",
        TITANIC,
        "crashed",
        "import os, pandas as pd\npd.read_csv(os.environ['DATA_DIR'] + '/train.csv')['Survived']",
        "missing_column",
    ),
    Case(
        "columns-selected",
        TITANIC,
        "crashed",
        "import os, pandas as pd\npd.read_csv(os.environ['DATA_DIR'] + '/train.csv')[['Sex', 'Fare', 'Age']]",
        "missing_column",
    ),
    Case(
        "column-dropped",
        TITANIC,
        "crashed",
        "import os, pandas as pd\npd.read_csv(os.environ['DATA_DIR'] + '/train.csv').drop(columns=['Ticket'])",
        "missing_column",
    ),
    Case(
        "column-logged",
        PIZZA,
        "crashed",
        """
import logging, model
logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
logging.info("training")
try:
    model.rows("sampleSubmission.csv")[0]["target"]
except KeyError:
    logging.exception("training failed, giving up")
""",
        "missing_column",
    ),
    Case(
        "text-as-number",
        TITANIC,
        "crashed",
        "import os, pandas as pd\npd.read_csv(os.environ['DATA_DIR'] + '/train.csv')['HomePlanet'].astype(float)",
        "data_type",
    ),
    Case(
        "nan-in-features",
        TITANIC,
        "crashed",
        """
import os, pandas as pd
from sklearn.linear_model import LogisticRegression
train = pd.read_csv(os.environ["DATA_DIR"] + "/train.csv")
LogisticRegression().fit(train[["Age", "Spa"]], train["Transported"])
""",
        "data_type",
    ),
    Case(
        "none-plus-number",
        PIZZA,
        "crashed",
        "import model\nsum(r['requester_received_pizza'] for r in model.rows('sampleSubmission.csv'))",
        "data_type",
    ),
    Case("shapes", TAXI, "crashed", "import numpy as np\nnp.ones((3, 4)) @ np.ones((5, 2))", "data_type"),
    Case("broadcast", TAXI, "crashed", "import numpy as np\nnp.ones(1080) - np.ones(121)", "data_type"),
    Case(
        "pool-of-workers",
        PIZZA,
        "crashed",
        """
from concurrent.futures import ProcessPoolExecutor
def one(text):
    return int(text)
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(one, ["1", "2", "three"])))
""",
        "data_type",
    ),
    Case(
        "json-of-csv",
        TITANIC,
        "crashed",
        "import json, os\njson.load(open(os.environ['DATA_DIR'] + '/train.csv'))",
        "data_type",
    ),
    Case(
        "not-utf8",
        TITANIC,
        "crashed",
        "open('x', 'wb').write(b'caf\\xe9')\nopen('x', encoding='utf-8').read()",
        "data_type",
    ),
    Case(
        "cuda-torch",
        TITANIC,
        "crashed",
        """
class OutOfMemoryError(RuntimeError): pass
OutOfMemoryError.__module__ = "torch"
for epoch in range(3): print(f"epoch {epoch} loss {0.6 - epoch / 10}")
raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB of which "
 "1.31 GiB is free. Including non-PyTorch memory, this process has 22.36 GiB memory in use. Of the allocated memory 20.11 "
 "GiB is allocated by PyTorch, and 1.86 GiB is reserved by PyTorch but unallocated.")
""",
        "gpu_memory",
    ),
    Case(
        "cuda-old-torch",
        PIZZA,
        "crashed",
        """raise RuntimeError("CUDA error: out of memory\\nCUDA kernel errors might be asynchronously reported at some other API "
 "call, so the stacktrace below might be incorrect.\\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.")""",
        "gpu_memory",
    ),
    Case(
        "cuda-tensorflow",
        TAXI,
        "crashed",
        """
class ResourceExhaustedError(Exception): pass
ResourceExhaustedError.__module__ = "tensorflow.python.framework.errors_impl"
print("2026-01-01 10:00:00.123456: W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory")
raise ResourceExhaustedError("Graph execution error:\\n\\nOOM when allocating tensor with shape[256,64,224,224] and type float "
 "on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc")
""",
        "gpu_memory",
    ),
    Case("syntax", TITANIC, "crashed", "print('training'\nfor x in range(3): pass", "code"),
    Case("name", PIZZA, "crashed", "import model\nprint('load')\nmodle.pizza()", "code"),
    Case("attribute", TAXI, "crashed", "import numpy as np\nnp.zeros(3).astype(np.float)", "code"),
    Case(
        "assertion", TITANIC, "crashed", "import model\nassert len(model.titanic()) == 870, 'rows are missing'", "code"
    ),
    Case("unexpected-argument", TITANIC, "crashed", "print('x', colour='red')", "code"),
    Case("recursion", PIZZA, "crashed", "def deep(n): return deep(n + 1)\ndeep(0)", "code"),
    Case("segfault", PIZZA, "crashed", "import ctypes\nprint('loading', flush=True)\nctypes.string_at(0)", "native"),
    Case("abort", TAXI, "crashed", "import faulthandler, os\nfaulthandler.enable()\nos.abort()", "native"),
    Case(
        "no-network",
        TITANIC,
        "crashed",
        "import urllib.request\nurllib.request.urlopen('https://huggingface.co/bert-base-uncased')",
        "network",
        sealed=True,
    ),
    Case(
        "refused",
        PIZZA,
        "crashed",
        "import socket\nprint('calling the model')\nsocket.create_connection(('127.0.0.1', 9))",
        "network",
        sealed=True,
    ),
    # Nothing was submitted
    Case("silent-end", TITANIC, "no_submission", "pass"),
    Case("exit-three", PIZZA, "no_submission", "import sys\nprint('no idea what to do')\nsys.exit(3)"),
    Case(
        "wrong-name",
        TAXI,
        "no_submission",
        "import model\nmodel.write(['key', 'fare_amount'], model.taxi(), 'output.csv')",
    ),
    Case(
        "wrong-folder",
        TITANIC,
        "no_submission",
        "import model, os\nmodel.write(['PassengerId', 'Transported'], model.titanic(), folder=os.environ['CODE_DIR'])\nprint('saved')",
    ),
    Case(
        "looks-like-errors",
        PIZZA,
        "no_submission",
        """
import warnings
warnings.warn("ValueError: this is only a warning, error rate 0.1")
print("Errors so far: 0. No module named so. FileNotFoundError is handled.")
print("training error: 0.31\\nvalidation error: 0.35\\ndone")
""",
    ),
    Case("refuses", TAXI, "no_submission", "print('I am sorry, I cannot work on this task without more information.')"),
    Case(
        "recovers-without-result",
        TITANIC,
        "no_submission",
        """
import traceback
try:
    import xgboost
except ImportError:
    traceback.print_exc()
print("falling back to a linear model", flush=True)
for epoch in range(40):
    print(f"epoch {epoch}: loss {1 / (epoch + 1):.3f}")
print("all done, the model is saved")
""",
    ),
    # Limits
    Case("endless", TITANIC, "timeout", "print('training', flush=True)\nwhile True: pass", sealed=True),
    Case(
        "endless-retries",
        PIZZA,
        "timeout",
        """
import time, traceback
while True:
    try:
        raise ConnectionError("model endpoint: 503")
    except ConnectionError:
        traceback.print_exc()
    time.sleep(0.5)
""",
        sealed=True,
    ),
    Case(
        "endless-after-good",
        TAXI,
        BY_SCORE,
        "import model, time\nmodel.submit(model.taxi)\nprint('improving', flush=True)\ntime.sleep(1000)",
        also=("timeout",),
        sealed=True,
    ),
    Case(
        "endless-after-sample",
        TITANIC,
        "trivial",
        "#!bash\ncp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv\nsleep 1000",
        also=("timeout",),
        sealed=True,
    ),
    Case(
        "memory",
        TITANIC,
        "out_of_memory",
        "kept = []\nwhile True: kept.append(bytearray(b'x' * 10_000_000))",
        sealed=True,
    ),
    Case(
        "memory-of-child",
        PIZZA,
        "out_of_memory",
        '#!bash\npython3 -c \'kept = [bytes(10**7).replace(b"\\0", b"x") for _ in range(1000)]\'\necho the end',
        sealed=True,
    ),
    Case("memory-error", TAXI, "out_of_memory", "import numpy as np\nnp.ones((10**6, 10**6, 10))"),
    Case(
        "memory-error-plain",
        TITANIC,
        "out_of_memory",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (200_000_000,) * 2)\nx = bytearray(10**9)",
        sealed=True,
    ),
    Case("file-too-large", TITANIC, "over_disk", "open('/home/logs/cache.bin', 'wb').write(b'x' * 10**8)", sealed=True),
    Case(
        "many-files",
        TITANIC,
        "over_disk",
        "import time\nfor n in range(60):\n    open(f'/home/logs/{n}.bin', 'wb').write(b'x' * 2**21); time.sleep(0.2)\nprint('cached')",
        sealed=True,
    ),
    Case("disk-full", PIZZA, "over_disk", "open('/dev/shm/cache.bin', 'wb').write(b'x' * 10**8)", sealed=True),
    # What was submitted has no score
    Case(
        "wrong-columns", TITANIC, "invalid_format", "import model\nmodel.write(['id', 'prediction'], model.titanic())"
    ),
    Case(
        "too-few-rows",
        PIZZA,
        "invalid_format",
        "import model\nmodel.write(model.HEADERS[model.pizza], model.pizza()[:20])",
    ),
    Case("nan-predictions", TAXI, "invalid_format", "import model\nmodel.submit(model.taxi, lambda fare: '')"),
    Case("empty-file", TITANIC, "invalid_format", "import model\nopen(model.OUT + '/submission.csv', 'w')"),
    Case("percent", PIZZA, "invalid_format", "import model\nmodel.submit(model.pizza, lambda p: 100 * p)"),
    Case(
        "json-submission",
        TITANIC,
        "invalid_format",
        "import json, model\njson.dump(model.titanic(), open(model.OUT + '/submission.csv', 'w'))",
    ),
    Case(
        "crash-while-writing",
        TITANIC,
        "invalid_format",
        """
import model
with open(model.OUT + "/submission.csv", "w") as file:
    file.write("PassengerId,Transported\\n")
    for id, value in model.titanic()[:10]: file.write(f"{id},{value}\\n")
    file.flush()
    raise ValueError("could not convert string to float: 'Europa'")
""",
        also=("crashed",),
    ),
    # Graded, but worthless
    Case("sample", TAXI, "trivial", "#!bash\ncp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"),
    Case("constant", TITANIC, "trivial", "import model\nmodel.submit(model.titanic, lambda _: True)"),
    Case("mean-fare", TAXI, "trivial", "import model\nmodel.submit(model.taxi, lambda _: 9.8)"),
    Case(
        "sample-shuffled",
        PIZZA,
        "trivial",
        "import model, random\nmade = [(id, 0) for id, _ in model.pizza()]\nrandom.seed(0); random.shuffle(made)\nmodel.write(model.HEADERS[model.pizza], made)",
    ),
    Case(
        "sample-after-crash",
        PIZZA,
        "trivial",
        """
import model, shutil, traceback
try:
    import transformers
except ImportError:
    traceback.print_exc()
    shutil.copy(model.DATA + "/sampleSubmission.csv", model.OUT + "/submission.csv")
""",
    ),
    # The metric was misunderstood
    Case("inverted-pizza", PIZZA, "metric_misunderstood", "import model\nmodel.submit(model.pizza, lambda p: 1 - p)"),
    Case(
        "inverted-titanic",
        TITANIC,
        "metric_misunderstood",
        "import model\nmodel.submit(model.titanic, lambda value: not value)",
    ),
    Case("logarithms", TAXI, "metric_misunderstood", "import math, model\nmodel.submit(model.taxi, math.log1p)"),
    Case("plain-logarithms", TAXI, "metric_misunderstood", "import math, model\nmodel.submit(model.taxi, math.log)"),
    Case("cents", TAXI, "metric_misunderstood", "import model\nmodel.submit(model.taxi, lambda fare: 100 * fare)"),
    Case("thousands", TAXI, "metric_misunderstood", "import model\nmodel.submit(model.taxi, lambda fare: fare / 1000)"),
    # Own validation
    Case(
        "leaky-validation",
        TITANIC,
        "validation_gap",
        "import json, model\nmodel.submit(model.titanic)\njson.dump({'metric': 'accuracy', 'value': 0.985, 'higher_is_better': True}, open(model.LOGS + '/validation.json', 'w'))",
    ),
    Case(
        "leaky-trajectory",
        PIZZA,
        "validation_gap",
        "import model, random\nrandom.seed(3)\nmodel.submit(model.pizza, lambda p: random.random() * 0.6 + 0.4 * p)\nfor step, value in enumerate((0.81, 0.97, 0.99)): model.told(kind='validation', step=step, metric='auc', value=value, higher_is_better=True)",
    ),
    Case(
        "leaky-error",
        TAXI,
        "validation_gap",
        "import model\nmodel.submit(model.taxi, lambda fare: 0.5 * fare + 2)\nmodel.told(kind='validation', step=1, metric='rmse', value=0.21, higher_is_better=False)",
    ),
    Case(
        "gap-of-folds",
        TITANIC,
        "validation_gap",
        "import json, model\nmodel.submit(model.titanic)\njson.dump({'scores': [0.93, 0.95], 'metric': 'accuracy', 'score': 0.94}, open(model.LOGS + '/validation.json', 'w'))",
    ),
    Case(
        "gap-without-names",
        TAXI,
        "validation_gap",
        "import model\nmodel.submit(model.taxi)\nfor step in range(5): model.told(kind='validation', step=step, metric=None, value=2.0 - step / 4, higher_is_better=False)",
    ),
    Case(
        "gap-with-medal",
        PIZZA,
        "validation_gap",
        "import model\nmodel.submit(model.pizza_with_giver)\nmodel.told(kind='validation', step=7, metric='auc', value=0.999, higher_is_better=True)",
        also=("medal",),
    ),
    # Below the median, and the good outcomes
    Case("medal", PIZZA, BY_SCORE, "import model\nmodel.submit(model.pizza_with_giver)"),
    Case(
        "medal-at-the-last-moment",
        PIZZA,
        BY_SCORE,
        "import model, time\nmodel.submit(model.pizza_with_giver)\nwhile True: time.sleep(1); print('still improving', flush=True)",
        also=("timeout",),
        sealed=True,
    ),
    Case(
        "medal-then-memory",
        PIZZA,
        BY_SCORE,
        "import model\nmodel.submit(model.pizza_with_giver)\nkept = []\nwhile True: kept.append(bytearray(b'x' * 10_000_000))",
        also=("out_of_memory",),
        sealed=True,
    ),
    Case(
        "medal-and-honest-validation",
        PIZZA,
        BY_SCORE,
        "import model\nmodel.submit(model.pizza_with_giver)\nmodel.told(kind='validation', step=7, metric='auc', value=0.78, higher_is_better=True)",
    ),
    Case("honest-titanic", TITANIC, BY_SCORE, "import model\nmodel.submit(model.titanic)"),
    Case(
        "honest-validation",
        TITANIC,
        BY_SCORE,
        "import json, model\nmodel.submit(model.titanic)\njson.dump([{'metric': 'accuracy', 'value': 0.72, 'higher_is_better': True}], open(model.LOGS + '/validation.json', 'w'))",
    ),
    Case(
        "crash-after-submission",
        TITANIC,
        "crashed",
        "import model\nmodel.submit(model.titanic)\nprint('ensembling')\nimport lightgbm",
        "missing_package",
        also=("below_median",),
    ),
    Case(
        "recovers",
        TAXI,
        BY_SCORE,
        """
import model, traceback
try:
    import xgboost
except ImportError:
    traceback.print_exc()
print("falling back to distance")
model.submit(model.taxi)
""",
    ),
    Case(
        "noisy-pizza",
        PIZZA,
        BY_SCORE,
        "import model, random\nrandom.seed(5)\nmodel.submit(model.pizza, lambda p: random.random())",
    ),
    Case("rough-taxi", TAXI, BY_SCORE, "import model\nmodel.submit(model.taxi, lambda fare: 0.4 * fare + 8)"),
    Case("good-taxi", TAXI, BY_SCORE, "import model\nmodel.submit(model.taxi)"),
    Case("good-pizza", PIZZA, BY_SCORE, "import model\nmodel.submit(model.pizza)"),
    Case(
        "good-with-warnings",
        PIZZA,
        BY_SCORE,
        "import model, warnings\nwarnings.warn('RuntimeWarning: divide by zero; MemoryError avoided')\nmodel.submit(model.pizza, lambda p: p / 2)\nprint('Error: none')",
    ),
    # Too good
    Case(
        "answers-found",
        TITANIC,
        "suspicious",
        "import model\nfound = {r['PassengerId']: r['Transported'] for r in model.rows('../private/test.csv')}\nmodel.write(['PassengerId', 'Transported'], found.items())",
    ),
    Case(
        "answers-found-again",
        TAXI,
        "suspicious",
        "import model\nfound = {r['key']: r['fare_amount'] for r in model.rows('../private/test.csv')}\nmodel.write(['key', 'fare_amount'], found.items())",
    ),
    # Not the agent's fault; made by `failed_runs.py`
    Case("infrastructure", TITANIC, "infrastructure", "pass"),
    Case("stopped", PIZZA, "cancelled", "import time\nprint('training', flush=True)\ntime.sleep(1000)"),
    Case(
        "stopped-after-submission", TAXI, "cancelled", "import model, time\nmodel.submit(model.taxi)\ntime.sleep(1000)"
    ),
]
