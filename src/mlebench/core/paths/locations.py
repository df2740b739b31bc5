"""Where things are on this machine: the package's own folders, and those that the user's settings name.

Settings come from the environment, then from a YAML file (keys `data_dir`, `competition_path`, `slurm`).
"""

import os
import sys
from pathlib import Path

from mlebench.core.settings import read_setting

DATA_DIR_VARIABLE = "MLEBENCH_DATA_DIR"
VENVS_DIR_VARIABLE = "MLEBENCH_VENVS_DIR"
COMPETITION_PATH_VARIABLE = "MLEBENCH_COMPETITION_PATH"
CONFIG_VARIABLE = "MLEBENCH_CONFIG"
VARIABLE_PREFIX = "MLEBENCH_"
VARIABLES = (DATA_DIR_VARIABLE, COMPETITION_PATH_VARIABLE, VENVS_DIR_VARIABLE, CONFIG_VARIABLE)


def module_dir() -> Path:
    return Path(__file__).parents[2].resolve()


def competitions_dir() -> Path:
    return module_dir() / "competitions"


def splits_dir() -> Path:
    return module_dir() / "splits"


def profiles_dir() -> Path:
    """Where releases of profiles are recorded."""
    return module_dir() / "profiles"


def agents_dir() -> Path:
    return module_dir() / "agents"


def cache_dir() -> Path:
    if sys.platform == "darwin":
        base = Path("~/Library/Caches").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "mle-bench"


def kernels_dir(competition_id: str) -> Path:
    """Where published notebooks of a competition are kept, as `owner/name.ipynb` or `.py`."""
    return cache_dir() / "kernels" / competition_id


def packages_dir() -> Path:
    """Where files of packages are kept that runs fetched from an index."""
    return cache_dir() / "packages"


def fingerprints_dir() -> Path:
    """Where the fingerprints of notebooks are kept."""
    return cache_dir() / "fingerprints"


def fingerprints(folder: Path, sha256: str) -> Path:
    return folder / sha256[:2] / f"{sha256}.npy"


def gold_cost(competition_id: str, sha256: str) -> Path:
    """What it takes to grade a gold submission, where `prepare` did not record it."""
    return cache_dir() / "gold" / competition_id / f"{sha256}.json"


def judge_dir() -> Path:
    """What judges were asked and answered, and how good they are. Never inside a run."""
    return _state_dir() / "judge"


def familiarity_dir() -> Path:
    """What models were asked about competitions, and answered."""
    return _state_dir() / "familiarity"


def _state_dir() -> Path:
    base = "~/Library/Application Support" if sys.platform == "darwin" else os.environ.get("XDG_STATE_HOME")
    return Path(base or "~/.local/state").expanduser() / "mle-bench"


def config_file() -> Path:
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "mle-bench" / "config.yaml"


def default_data_dir(*, twin: bool = False) -> Path:
    """The default data directory: real data and twins have different ones."""
    if named := os.environ.get(DATA_DIR_VARIABLE):
        return resolved(named)
    if not twin and (configured := read_setting(config_file(), "data_dir")):
        return resolved(Path(configured).expanduser())
    return resolved(cache_dir() / ("twins" if twin else "data"))


def venvs_dir() -> Path:
    """Where the virtual environments of agents are kept."""
    return resolved(os.environ.get(VENVS_DIR_VARIABLE) or cache_dir() / "venvs")


def npm_dir() -> Path:
    """Where the npm packages of agents are kept."""
    return venvs_dir() / "npm"


def venv_record(venv: Path) -> Path:
    return venv / "ready.json"


def agent_lock(requirements: Path) -> Path:
    """The lock beside an agent's requirements: exact versions and checksums."""
    return requirements.with_suffix(".lock")


def venv_lock(venv: Path) -> Path:
    return venv.with_name(f"{venv.name}.lock")


def competition_path() -> list[Path]:
    """Folders outside the package that hold competition folders."""
    if named := os.environ.get(COMPETITION_PATH_VARIABLE):
        entries = named.split(os.pathsep)
    else:
        entries = read_setting(config_file(), "competition_path") or []
    return [Path(entry).expanduser().resolve() for entry in entries if entry]


def resolved(path: Path | str) -> Path:
    """Absolute, with links followed; a link to itself is left for the caller to fail on."""
    return Path(os.path.realpath(path))
