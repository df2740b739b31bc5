"""`--container-config`: translates the JSON file of container settings that existing setups have."""

from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import parse_json
from mlebench.records.group import RequestedLimits

UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
KEYS = ("mem_limit", "shm_size", "nano_cpus", "cpus", "gpus", "runtime")


class ContainerConfig(NamedTuple):
    requested: RequestedLimits = RequestedLimits()
    gpus: list[str] | None = None  # None: it does not say
    runtime: str | None = None


def read_container_config(path: Path) -> ContainerConfig:
    """What the file asks for. Keys that we do not translate are refused."""
    try:
        data = parse_json(path.read_bytes())
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise PrerequisiteError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise PrerequisiteError(f"{path} must hold a JSON object")
    if unknown := sorted(data.keys() - set(KEYS)):
        names = ", ".join(f"`{key}`" for key in unknown)
        verb = "has" if len(unknown) == 1 else "have"
        raise PrerequisiteError(f"{path}: {names} {verb} no meaning here; known keys are {', '.join(KEYS)}")
    requested = RequestedLimits(
        memory=_size(path, data, "mem_limit"), shm=_size(path, data, "shm_size"), cpus=_cpus(path, data)
    )
    runtime = data.get("runtime")
    if not isinstance(runtime, str | None):
        raise PrerequisiteError(f"{path}: `runtime` must be the name of a runtime, not {runtime!r}")
    return ContainerConfig(requested, _gpus(path, data.get("gpus")), runtime)


def _cpus(path: Path, data: dict[str, Any]) -> float | None:
    for key, unit in (("cpus", 1), ("nano_cpus", 10**9)):
        value = data.get(key)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise PrerequisiteError(f"{path}: `{key}` must be a number above 0, not {value!r}")
            return value / unit
    return None


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
        case int() if value > 0 and value is not True:
            return [str(index) for index in range(value)]
        case list():
            return [str(item) for item in value]
    raise PrerequisiteError(f"{path}: `gpus` must be -1 for all, a number, or a list of indices, not {value!r}")
