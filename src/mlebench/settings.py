"""The user's settings for all commands, in a YAML file."""

from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError


def read_setting(path: Path, key: str, kind: type) -> Any:
    """The value of a key; None if the file or the key does not exist."""
    if not path.is_file():
        return None
    import yaml

    try:
        value = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get(key)
    except (yaml.YAMLError, AttributeError) as error:
        raise PrerequisiteError(f"{path} is not a YAML mapping: {_first_line(error)}") from error
    if value is not None and not isinstance(value, kind):
        raise PrerequisiteError(f"{path}: `{key}` must be a {kind.__name__}, not {value!r}")
    return value


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
