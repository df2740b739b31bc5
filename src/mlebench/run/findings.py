"""What a tool found about a run: one record for each tool, in the run's folder `findings/`.

Tools (`mlebench.integrity`) write these records. Standings and pages, in lower layers than the tools, read them.
"""

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.paths import RunPaths
from mlebench.records import Record, now
from mlebench.run.records import Run, RunRecord
from mlebench.untrusted import UntrustedFileError, open_below

logger = logging.getLogger(__name__)

VIOLATION, CONDITION, NOTE = KINDS = ("violation", "condition", "note")
YES, NO, NOT_ENOUGH = ANSWERS = ("yes", "no", "not enough evidence")  # what a judge says
JUDGE = "judge"
BY_JUDGE = f"{JUDGE}:"  # the prefix of rules whose findings come from a judge
UNCALIBRATED = "uncalibrated"
NOT_GRADED = "not_graded"  # the category of runs whose submission has no score yet
LARGEST = 8 << 20  # bytes of a record
MOST_TOOLS = 20
_TEXTS = ("kind", "rule", "says")  # of a finding


@dataclass(frozen=True)
class Evidence:
    """Where a finding was made, quoted verbatim."""

    file: str
    quote: str
    line: int | None = None


@dataclass(frozen=True)
class Finding:
    kind: str  # one of KINDS
    rule: str  # the name of the rule that found it
    says: str  # one sentence
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Findings(Record):
    tool: str
    made_at: str = field(default_factory=now)
    facts: dict[str, Any] = field(default_factory=dict)  # further facts, such as a category
    findings: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, tool: str, found: list[Finding], **facts: Any) -> "Findings":
        return cls(tool=tool, facts=facts, findings=[asdict(one) for one in found])

    def write_for(self, run: RunPaths) -> None:
        run.findings.mkdir(exist_ok=True)
        self.write(run.finding(self.tool))

    def checked(self, where: Path | str) -> "Findings":
        """The record, if its fields have the types that readers rely on."""
        texts = [self.tool, self.made_at] + [one.get(key) for one in _objects(self.findings) for key in _TEXTS]
        sound = isinstance(self.facts, dict) and self.findings == _objects(self.findings)
        if not sound or not all(isinstance(text, str) for text in texts):
            raise PrerequisiteError(f"{where} does not hold the findings of a tool")
        return self


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def is_about(run: RunRecord, made_at: str, facts: Any = None) -> bool:
    """Whether findings made then are about the run's final state, not an earlier attempt or a run in progress.

    Nor are they if they say that it was not graded, and it has been since.
    """
    if run.report and isinstance(facts, dict) and facts.get("category") == NOT_GRADED:
        return False
    return run.is_final and (run.ended_at is None or made_at >= run.ended_at)


def read_findings(run: Run) -> Iterator[Findings]:
    """What was found about a run since it ended, tool by tool. Unreadable records are left out, with a warning."""
    folder = run.paths.findings
    names = sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []
    for name in names[:MOST_TOOLS]:
        try:
            with open_below(run.paths.root, (folder.name, name), LARGEST) as file:
                found = Findings.parse(file.read(LARGEST), folder / name).checked(folder / name)
        except (UntrustedFileError, PrerequisiteError) as error:
            logger.warning("%s is left out: %s", folder / name, error)
            continue
        if is_about(run.record, found.made_at, found.facts):
            yield found


def trust_in(calibration: Any, question: str) -> str:
    """How far a judge's answers to a question can be trusted: what its calibration says, for people."""
    counts = calibration.get("questions") if isinstance(calibration, dict) else None
    count = counts.get(question) if isinstance(counts, dict) else None
    names = ("found", "planted", "false_alarms", "clean", "found_addressed", "planted_addressed")
    if not isinstance(count, dict) or not all(type(count.get(name)) is int for name in names):
        return UNCALIBRATED
    return (
        f"recall {count['found']} of {count['planted']}, false alarms {count['false_alarms']} of {count['clean']}; "
        f"of cases that address the judge, it finds {count['found_addressed']} of {count['planted_addressed']}"
    )
