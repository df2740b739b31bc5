"""Names that existing clients and competitions written for the reference import from here; nothing of ours does."""

import logging
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.errors import PrerequisiteError
from mlebench.paths import module_dir as get_module_dir
from mlebench.paths import timestamp as get_timestamp
from mlebench.scoring import import_fn
from mlebench.validate.reading import load_answers, read_jsonl

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "authenticate_kaggle_api",
    "compress",
    "create_run_dir",
    "extract",
    "get_logger",
    "get_module_dir",
    "get_repo_dir",
    "get_runs_dir",
    "get_timestamp",
    "import_fn",
    "is_empty",
    "load_answers",
    "load_yaml",
    "purple",
    "read_csv",
    "read_jsonl",
]


def read_csv(*args: Any, **kwargs: Any) -> "pd.DataFrame":
    """`pandas.read_csv` with exact floats; an empty file gives an empty frame."""
    import pandas as pd

    from mlebench.kit.frames import read_frame

    try:
        return read_frame(*args, **kwargs)
    except pd.errors.EmptyDataError:
        logging.getLogger(__name__).warning("CSV file is empty: %s", args[0])
        return pd.DataFrame()


def load_yaml(fpath: Path) -> Any:
    import yaml

    return yaml.safe_load(Path(fpath).read_text(encoding="utf-8"))


def get_logger(name: str, level: int = logging.INFO, filename: Path | None = None) -> logging.Logger:
    """A logger by name. Handlers are the program's business; a file is added when one is named."""
    named = logging.getLogger(name)
    if filename is not None:
        named.addHandler(logging.FileHandler(filename))
        named.setLevel(level)
    return named


def purple(str: str) -> str:
    return f"\033[1;35m{str}\033[0m"


def get_repo_dir() -> Path:
    """The folder that holds the package and, beside it, `environment/`."""
    return get_module_dir().parent


def get_runs_dir() -> Path:
    return get_repo_dir() / "runs"


def create_run_dir(
    competition_id: str | None = None, agent_id: str | None = None, run_group: str | None = None
) -> Path:
    """A new folder for one run."""
    name = str(uuid.uuid4())
    if competition_id and agent_id:
        name = f"{competition_id}_{name}" if run_group else f"{get_timestamp()}_{competition_id}_{agent_id}_{name[:8]}"
    path = get_runs_dir() / (run_group or "") / name
    path.mkdir(parents=True)
    return path


def is_empty(dir: Path) -> bool:
    return not any(Path(dir).iterdir())


def extract(compressed: Path, dst: Path, recursive: bool = False) -> None:
    """Unpack a zip archive into a folder and, when `recursive`, the zip archives found there."""
    _require_zip(compressed)
    before = set(dst.glob("*")) if dst.exists() else set()
    with zipfile.ZipFile(compressed) as archive:
        archive.extractall(dst)
    if recursive:
        for inner in sorted(set(dst.glob("*.zip")) - before - {compressed}):
            extract(inner, dst, recursive=True)


def compress(src: Path, compressed: Path, exist_ok: bool = False) -> None:
    """Pack the files below a folder into a zip archive."""
    _require_zip(compressed)
    with zipfile.ZipFile(compressed, "w" if exist_ok else "x", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in src.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(src))


def authenticate_kaggle_api() -> Any:
    """A logged-in client of Kaggle's API."""
    from mlebench.data.kaggle_api import connect

    try:
        return connect(tries=2)
    except PrerequisiteError as error:
        raise PermissionError(f"cannot log in to Kaggle: {error}") from error


def _require_zip(path: Path) -> None:
    if path.suffix != ".zip":
        raise PrerequisiteError(f"{path.name}: only zip archives are supported here")
