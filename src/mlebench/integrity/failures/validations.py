"""What an agent measured itself: the last validation in its trajectory, or in its file `validation.json`."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.paths import own_validation, trajectory
from mlebench.integrity.subjects import AgentFile
from mlebench.records.timeline import lines_in
from mlebench.records.untrusted_lines import parsed

MOST = 1 << 20  # bytes of a file that are read, at its end
LONGEST = 10_000  # bytes of the agent's file; a validation is short
VALUES = ("value", "score", "mean")


class Validation(NamedTuple):
    value: float
    metric: str
    higher_is_better: bool | None
    file: str
    quote: str


def last_validation(sources: Iterable[AgentFile]) -> Validation | None:
    """The trajectory takes precedence over the file."""
    named = {source.parts[-1] if source.parts else source.name: source for source in sources}
    for path, objects in ((trajectory(Path()), _lines), (own_validation(Path()), _whole)):
        if source := named.get(path.name):
            validations = [validation for data in objects(source) if (validation := _validation(data, source.name))]
            if validations:
                return validations[-1]
    return None


def _lines(source: AgentFile) -> Iterator[Any]:
    for _, line in lines_in(source.ends(0, MOST)[1]):
        if line is not None and line.get("kind") == "validation":
            yield line


def _whole(source: AgentFile) -> Iterator[Any]:
    data = parsed(source.read(LONGEST))
    yield from data if isinstance(data, list) else [data]


def _validation(data: Any, file: str) -> Validation | None:
    if not isinstance(data, dict):
        return None
    value = next((data[key] for key in VALUES if _is_number(data.get(key))), None)
    if value is None:
        return None
    higher = data.get("higher_is_better")
    metric = data.get("metric")
    return Validation(
        value=float(value),
        metric=metric[:60] if isinstance(metric, str) else "validation",
        higher_is_better=higher if isinstance(higher, bool) else None,
        file=file,
        quote=json.dumps(data)[:300],
    )


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )
