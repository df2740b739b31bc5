"""`--container-config`: the settings of containers that existing set-ups have in a JSON file, in our words."""

import json
from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.run.machine import Wishes

UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
KEYS = ("mem_limit", "shm_size", "nano_cpus", "cpus", "gpus")


def read_container_config(path: Path) -> tuple[Wishes, list[str] | None]:
    """Limits, and the GPUs it asks for (None: it does not say). A key that we do not translate is refused."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise PrerequisiteError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise PrerequisiteError(f"{path} must hold a JSON object")
    if unknown := sorted(data.keys() - set(KEYS)):
        raise PrerequisiteError(f"{path}: `{unknown[0]}` has no meaning here; known are {', '.join(KEYS)}")
    cpus = data.get("cpus") or (data["nano_cpus"] / 1e9 if data.get("nano_cpus") else None)
    wishes = Wishes(memory=_size(path, data, "mem_limit"), shm=_size(path, data, "shm_size"), cpus=cpus)
    return wishes, _gpus(path, data.get("gpus"))


def _size(path: Path, data: dict[str, Any], key: str) -> int | None:
    value = data.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    text = str(value).strip().lower().removesuffix("b")
    unit = UNITS.get(text[-1:], 0)
    try:
        return int(float(text[:-1]) * unit) if unit else int(text)
    except ValueError:
        raise PrerequisiteError(f"{path}: `{key}` is not a size: {value!r}") from None


def _gpus(path: Path, value: Any) -> list[str] | None:
    match value:
        case None:
            return None
        case 0:
            return []
        case -1 | "all":
            return ["all"]
        case list():
            return [str(item) for item in value]
    raise PrerequisiteError(f"{path}: `gpus` must be -1 for all, 0 for none, or a list of indices, not {value!r}")
