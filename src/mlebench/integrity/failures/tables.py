"""Failures of many runs in tables: how each ended, and for each agent what happened most often."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mlebench.integrity.failures.inspection import Classified
from mlebench.integrity.failures.rules import CAUSE_WORDS, GOOD, OTHER, RULES

WIDEST_BAR = 30
LONGEST = 90  # characters of a sentence in a table
WORDS = {rule.category: rule.words for rule in (*RULES, OTHER)}
ORDER = [*WORDS]


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


def shares(classified: Sequence[Classified]) -> list[Share]:
    """By agent: what to fix, most frequent first, and then the good outcomes."""
    totals = Counter(run.agent for run in classified)
    counted = Counter((run.agent, run.verdict.category, run.verdict.cause) for run in classified)
    return sorted(
        (Share(*key, runs, totals[key[0]]) for key, runs in counted.items()),
        key=lambda share: (
            share.agent,
            share.category in GOOD,
            -share.runs,
            ORDER.index(share.category),
            share.cause or "",
        ),
    )


def share_rows(classified: Sequence[Classified]) -> Iterator[list[Any]]:
    for share in shares(classified):
        yield [share.agent, share.words, share.runs, f"{100 * share.runs / share.of:.0f} %", share.bar]


def run_rows(classified: Sequence[Classified]) -> Iterator[list[Any]]:
    for run in classified:
        subject, verdict = run.subject, run.verdict
        says = f"not read completely: {verdict.unread}; {verdict.says}" if verdict.unread else verdict.says
        says = says.partition("\n")[0]
        also = ", ".join(words(category) for category in verdict.also)
        name = subject.run.record.run_id[:8] if subject.run else f"{subject.origin}, {subject.name}"
        cut = says if len(says) <= LONGEST else f"{says[: LONGEST - 1]}…"
        yield [name, subject.competition, run.seed, words(verdict.category, verdict.cause), also or None, cut]


def as_json(classified: Sequence[Classified]) -> dict[str, Any]:
    return {
        "runs": [
            {
                "group": run.subject.group.record.id if run.subject.group else run.subject.origin,
                "run": run.subject.name,
                "agent": run.agent,
                "competition": run.subject.competition,
                "seed": run.seed,
                **run.verdict.findings().facts,
            }
            for run in classified
        ],
        "agents": [share._asdict() for share in shares(classified)],
    }
