"""The user's settings for all commands, in a YAML file."""

from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.suggestions import did_you_mean

KINDS = {"data_dir": str, "competition_path": list, "slurm": dict}


def read_setting(path: Path, key: str) -> Any:
    """The value of a key; None if the file or the key does not exist."""
    return read_settings(path).get(key)


def read_settings(path: Path) -> dict[str, Any]:
    """All keys and values; a misspelled key would have no effect, so it is refused."""
    if not path.is_file():
        return {}
    import yaml

    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PrerequisiteError(f"{path} is not a YAML mapping: {str(error).splitlines()[0]}") from error
    if not isinstance(settings, dict):
        raise PrerequisiteError(f"{path} is not a YAML mapping: it should hold lines such as `data_dir: FOLDER`")
    for key, value in settings.items():
        if key not in KINDS:
            raise PrerequisiteError(
                f"{path}: there is no setting `{key}`; {did_you_mean(str(key), KINDS, cutoff=0.72)}"
            )
        if value is not None and not isinstance(value, KINDS[key]):
            raise PrerequisiteError(f"{path}: `{key}` must be a {KINDS[key].__name__}, not {value!r}")
    return settings
