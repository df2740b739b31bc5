"""Names that existing clients and competitions written for the reference import from here. Our own code does not."""

import difflib
import importlib
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import default_data_dir, default_runs_dir
from mlebench.core.paths import module_dir as get_module_dir
from mlebench.core.paths import timestamp as get_timestamp
from mlebench.data.answers import load_answers, read_jsonl
from mlebench.data.archives import compress, extract, is_compressed, is_empty
from mlebench.scoring import import_fn

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "authenticate_kaggle_api",
    "compress",
    "create_run_dir",
    "extract",
    "generate_run_id",
    "get_diff",
    "get_logger",
    "get_module_dir",
    "get_path_to_callable",
    "get_repo_dir",
    "get_runs_dir",
    "get_timestamp",
    "import_fn",
    "in_ci",
    "is_compressed",
    "is_empty",
    "load_answers",
    "load_yaml",
    "purple",
    "read_csv",
    "read_jsonl",
]

LOG_FORMAT = "[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s"


def read_csv(*args: Any, **kwargs: Any) -> "pd.DataFrame":
    """`pandas.read_csv` with exact floats; an empty file gives an empty frame."""
    import pandas as pd

    from mlebench.engine.frames import read_frame

    try:
        return read_frame(*args, **kwargs)
    except pd.errors.EmptyDataError:
        logging.getLogger(__name__).warning("CSV file is empty: %s", args[0])
        return pd.DataFrame()


def load_yaml(fpath: Path) -> Any:
    import yaml

    return yaml.safe_load(Path(fpath).read_text(encoding="utf-8"))


def get_logger(name: str, level: int = logging.INFO, filename: Path | None = None) -> logging.Logger:
    """A logger by name. The root logger gets a handler if it has none: runners written for the reference use that."""
    logging.basicConfig(format=LOG_FORMAT, level=level, filename=filename)
    return logging.getLogger(name)


def purple(str: str) -> str:
    return f"\033[1;35m{str}\033[0m"


def get_repo_dir() -> Path:
    """The folder that holds the package and, beside it, `environment/`."""
    return get_module_dir().parent


def get_runs_dir() -> Path:
    """Where `mlebench run` keeps run groups by default."""
    return default_runs_dir(default_data_dir())


def generate_run_id(competition_id: str, agent_id: str, run_group: str | None = None) -> str:
    """A new name for a run; a group's name already has the time and the agent."""
    unique = str(uuid.uuid4())
    return f"{competition_id}_{unique}" if run_group else f"{get_timestamp()}_{competition_id}_{agent_id}_{unique[:8]}"


def create_run_dir(
    competition_id: str | None = None, agent_id: str | None = None, run_group: str | None = None
) -> Path:
    """A new folder for one run."""
    name = str(uuid.uuid4())
    if competition_id and agent_id:
        name = generate_run_id(competition_id, agent_id, run_group)
    path = get_runs_dir() / (run_group or "") / name
    path.mkdir(parents=True)
    return path


def get_path_to_callable(callable: Callable[..., Any]) -> Path:
    """The file that a function comes from, relative to the working folder."""
    file = getattr(importlib.import_module(callable.__module__), "__file__", None)
    if file is None:
        raise ValueError(f"{callable.__module__} does not come from a file")
    return Path(os.path.relpath(file))


def get_diff(d: dict[str, Any], other_d: dict[str, Any], fromfile: str = "d", tofile: str = "other_d") -> str:
    """How two nested mappings differ, as a unified diff of their YAML."""
    import yaml

    texts = [yaml.dump(values, sort_keys=True).splitlines() for values in (d, other_d)]
    return "\n".join(difflib.unified_diff(*texts, fromfile=fromfile, tofile=tofile, lineterm=""))


def in_ci() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def authenticate_kaggle_api() -> Any:
    """A logged-in client of Kaggle's API."""
    from mlebench.data.kaggle_api import connect

    try:
        return connect(tries=2)
    except PrerequisiteError as error:
        raise PermissionError(f"cannot log in to Kaggle: {error}") from error
