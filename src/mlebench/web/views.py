"""What pages show, as types: the fields of a view are the names in its template and, in this order, in its JSON."""

import msgspec

from mlebench.records.report import Badge
from mlebench.report.types import Entry


class View(msgspec.Struct):
    """A page, or a part of one."""


class AgentName(View):
    """An entry as pages name it, and its model where the name does not state it."""

    slug: str
    agent: str
    name: str
    model: str | None
    model_beside: str | None

    @classmethod
    def of(cls, slug: str, entry: Entry) -> "AgentName":
        is_stated = "model" in entry.label.conditions
        return AgentName(
            slug=slug,
            agent=entry.agent,
            name=entry.name,
            model=entry.model,
            model_beside=None if is_stated else entry.model,
        )


class Tab(View):
    """A link to the same page about other data."""

    title: str
    path: str


class Distribution(View):
    """How many teams had which score, in bins of equal width from `start` to `end`."""

    start: float = msgspec.field(name="from")
    end: float = msgspec.field(name="to")
    counts: list[int]
    worse: int  # teams with a score beyond the start


class RunResult(View):
    """A run of an agent on the page of a competition."""

    seed: int
    result: str
    score: float | None
    percentile: float | None
    normalised: float | None
    hours: float | None
    badges: list[Badge]  # of its medal
    page: str | None


class AgentRuns(AgentName):
    runs: list[RunResult]


class FactRow(View):
    """A name and a text; the values of a mapping are rows below its name."""

    name: str
    text: str | None
    below: "list[FactRow]"


class AttemptView(View):
    """An attempt; times are in seconds since the epoch."""

    number: int
    host: str
    begin: float
    agent_began: float
    is_agent_start_known: bool
    end: float
    ended: str | None
    detail: str | None
    forgiven: bool


class ScorePoint(View):
    seconds: float
    score: float | None
    status: str | None
