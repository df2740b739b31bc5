"""`mlebench inspect failures`: puts each run in a category."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlebench.integrity.failures.categories import Verdict, classify_isolated
from mlebench.integrity.subjects import FindingsWriter, Subject
from mlebench.registry import Registry
from mlebench.registry import registry as default_registry


@dataclass(frozen=True)
class Classified:
    """A run and how it ended."""

    subject: Subject
    verdict: Verdict

    @property
    def agent(self) -> str:
        return self.subject.group.record.agent.name if self.subject.group else self.subject.origin

    @property
    def seed(self) -> int | None:
        return self.subject.run.record.seed if self.subject.run else None


def inspect_failures(subjects: Iterable[Subject], registry: Registry | None = None) -> Iterator[Classified]:
    """Yield how each run ended and what to fix first, and write it to the runs' folders.

    `registry` knows the competitions of subjects whose records name no data directory.
    """
    writer = FindingsWriter()
    for subject in subjects:
        verdict = classify_isolated(subject, registry or default_registry)
        writer.write(subject, verdict.findings())
        yield Classified(subject, verdict)
