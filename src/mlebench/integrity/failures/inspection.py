"""`mlebench inspect failures`: puts each run in a category, and shows what happened most often."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mlebench.core.untrusted import shorten
from mlebench.integrity.failures.categories import Classification, classify_isolated
from mlebench.integrity.failures.rules import CAUSE_WORDS, GOOD, OTHER, RULES
from mlebench.integrity.subjects import FindingsWriter, Subject
from mlebench.registry import Registry
from mlebench.registry import registry as default_registry

WIDEST_BAR = 30
LONGEST = 90  # characters of a sentence in a table
WORDS = {rule.category: rule.words for rule in (*RULES, OTHER)}
ORDER = [*WORDS]


@dataclass(frozen=True)
class ClassifiedRun:
    """A run and how it ended."""

    subject: Subject
    verdict: Classification

    @property
    def agent(self) -> str:
        return self.subject.group.record.agent.name if self.subject.group else self.subject.origin

    @property
    def seed(self) -> int | None:
        return self.subject.run.record.seed if self.subject.run else None


def inspect_failures(subjects: Iterable[Subject], registry: Registry | None = None) -> Iterator[ClassifiedRun]:
    """Yield how each run ended and what to fix first, and write it to the runs' folders.

    `registry` knows the competitions of subjects whose records name no data directory.
    """
    writer = FindingsWriter()
    for subject in subjects:
        verdict = classify_isolated(subject, registry or default_registry)
        writer.write(subject, verdict.findings())
        yield ClassifiedRun(subject, verdict)


class CategoryShare(NamedTuple):
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


def shares(classified: Sequence[ClassifiedRun]) -> list[CategoryShare]:
    """By agent: what to fix, most frequent first, and then the good outcomes."""
    totals = Counter(run.agent for run in classified)
    counted = Counter((run.agent, run.verdict.category, run.verdict.cause) for run in classified)
    return sorted(
        (CategoryShare(*key, runs, totals[key[0]]) for key, runs in counted.items()),
        key=lambda share: (
            share.agent,
            share.category in GOOD,
            -share.runs,
            ORDER.index(share.category),
            share.cause or "",
        ),
    )


def share_rows(classified: Sequence[ClassifiedRun]) -> Iterator[list[Any]]:
    for share in shares(classified):
        yield [share.agent, share.words, share.runs, f"{100 * share.runs / share.of:.0f} %", share.bar]


def run_rows(classified: Sequence[ClassifiedRun]) -> Iterator[list[Any]]:
    for run in classified:
        subject, verdict = run.subject, run.verdict
        says = f"not read completely: {verdict.unread}; {verdict.says}" if verdict.unread else verdict.says
        says = says.partition("\n")[0]
        also = ", ".join(words(category) for category in verdict.also)
        name = subject.run.record.run_id[:8] if subject.run else f"{subject.origin}, {subject.name}"
        yield [
            name,
            subject.competition,
            run.seed,
            words(verdict.category, verdict.cause),
            also or None,
            shorten(says, LONGEST),
        ]


def as_json(classified: Sequence[ClassifiedRun]) -> dict[str, Any]:
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
