"""Failures of many runs in tables: how each ended, and for each agent what happened most often."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mlebench.integrity.failures.categories import Verdict
from mlebench.integrity.failures.rules import CAUSE_WORDS, GOOD, OTHER, RULES
from mlebench.integrity.subjects import Subject

WIDEST_BAR = 30
LONGEST = 90  # characters of a sentence in a table
WORDS = {rule.category: rule.words for rule in (*RULES, OTHER)}
ORDER = [*WORDS]


class Judged(NamedTuple):
    named: str  # the group or file, as named by the user
    subject: Subject
    verdict: Verdict

    @property
    def agent(self) -> str:
        return self.subject.group.record.agent.name if self.subject.group else self.named

    @property
    def seed(self) -> int | None:
        return self.subject.run.record.seed if self.subject.run else None


class Share(NamedTuple):
    """How many of an agent's runs ended in this category."""

    agent: str
    category: str
    cause: str | None
    runs: int
    of: int

    @property
    def words(self) -> str:
        return words(self.category, self.cause)

    @property
    def bar(self) -> str:
        """At least a dot, so that a small share does not look like none."""
        return "█" * round(WIDEST_BAR * self.runs / self.of) or "·"


def words(category: str, cause: str | None = None) -> str:
    return f"{WORDS[category]}: {CAUSE_WORDS.get(cause, cause)}" if cause else WORDS[category]


def shares(judged: Sequence[Judged]) -> list[Share]:
    """By agent: what to fix, most frequent first, and then the good outcomes."""
    totals = Counter(one.agent for one in judged)
    counted = Counter((one.agent, one.verdict.category, one.verdict.cause) for one in judged)
    found = [Share(*key, runs, totals[key[0]]) for key, runs in counted.items()]
    return sorted(
        found,
        key=lambda one: (one.agent, one.category in GOOD, -one.runs, ORDER.index(one.category), one.cause or ""),
    )


def share_rows(judged: Sequence[Judged]) -> Iterator[list[Any]]:
    for one in shares(judged):
        yield [one.agent, one.words, one.runs, f"{100 * one.runs / one.of:.0f} %", one.bar]


def run_rows(judged: Sequence[Judged]) -> Iterator[list[Any]]:
    for one in judged:
        found = one.verdict
        says = f"not read completely: {found.unread}; {found.says}" if found.unread else found.says
        says = says.partition("\n")[0]
        also = ", ".join(words(category) for category in found.also)
        run = f"{one.named}, {one.subject.name}" if one.subject.run is None else one.subject.run.record.run_id[:8]
        cut = says if len(says) <= LONGEST else f"{says[: LONGEST - 1]}…"
        yield [run, one.subject.competition, one.seed, words(found.category, found.cause), also or None, cut]


def as_json(judged: Sequence[Judged]) -> dict[str, Any]:
    return {
        "runs": [
            {
                "group": one.subject.group.record.id if one.subject.group else one.named,
                "run": one.subject.name,
                "agent": one.agent,
                "competition": one.subject.competition,
                "seed": one.seed,
                **one.verdict.findings().facts,
            }
            for one in judged
        ],
        "agents": [
            {"agent": one.agent, "category": one.category, "cause": one.cause, "runs": one.runs, "of": one.of}
            for one in shares(judged)
        ],
    }
