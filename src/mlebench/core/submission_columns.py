"""The columns of a submission and the kinds of their cells, as config.yaml declares them for profiles after v1."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from mlebench.core.errors import ConfigError

Kind = Literal["numbers", "integers", "booleans", "text"]


class DeclaresColumns(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def submission(self) -> dict[str, Any]: ...


class SubmissionColumns(NamedTuple):
    """All columns that a submission has."""

    key: tuple[str, ...]  # those that identify a row
    kinds: Mapping[str, Kind]  # of each predicted column

    @classmethod
    def of(cls, competition: DeclaresColumns) -> "SubmissionColumns":
        facts = competition.submission
        id, targets, values = (facts.get(name) for name in ("id", "targets", "values"))
        kinds: dict[str, Any] = values if isinstance(values, dict) else dict.fromkeys(targets or (), values)
        if not id or [*kinds] != targets or not {*kinds.values()} <= {*get_args(Kind)}:
            raise ConfigError(
                f"{competition.id}: profile {competition.profile} needs `submission: {{id: COLUMN, targets: [COLUMN, "
                f"...], values: KIND}}`; KIND is one of {', '.join(get_args(Kind))}, or a mapping from column to kind"
            )
        return cls(tuple(facts.get("key", [id])), kinds)
