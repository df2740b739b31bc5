"""A new agent's folder: it works unchanged, and has a place for your own code."""

import re
import shutil
from pathlib import Path

from mlebench.agents.spec import built_in
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import make_new_folder

_FILES = ("template/start.sh", "template/agent.py")
_CONFIG = """\
# An entry for each variant of the agent: `mlebench run --agent FOLDER#ID`. Paths begin with the folder's name.
{name}:
  start: {name}/start.sh
  # kwargs_type: argparse        # how kwargs reach start.sh: argparse (--key value) or omegaconf (key=value)
  # kwargs: {{steps: 20}}
  # env_vars: {{API_KEY: "${{{{ secrets.API_KEY }}}}"}}
  # model: which model it uses, for the record of each run
  # requirements: {name}/requirements.txt    # packages; `mlebench agents install FOLDER --lock` makes a venv of them
"""


def new_agent(name: str, parent: Path) -> Path:
    """Make a folder of this name, which must not exist yet."""
    if not re.fullmatch(r"[A-Za-z]\w{0,63}(-\w+)*", name, re.ASCII):
        hint = "; --folder says where to create it" if "/" in name else ""
        raise PrerequisiteError(f"{name!r} cannot be an agent's name: use letters, digits, - and _{hint}")
    if name in built_in():
        raise PrerequisiteError(f"there is already a built-in agent {name}: choose another name")
    folder = parent / name
    make_new_folder(folder)
    (folder / paths.CONFIG).write_text(_CONFIG.format(name=name), encoding="utf-8")
    for file in _FILES:
        shutil.copyfile(paths.agents_dir() / file, folder / Path(file).name)
    (folder / "start.sh").chmod(0o755)
    return folder
