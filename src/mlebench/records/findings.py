"""What a tool found about a run: one record for each tool, in the run's folder `findings/`.

Tools (`mlebench.integrity`) write these records. Standings and pages, in lower layers than the tools, read them.
"""

import logging
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import field

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import RunPaths
from mlebench.core.untrusted import UntrustedFileError, open_below
from mlebench.records.base import Count, Record, Text, Time, now, parse, write
from mlebench.records.run import RunRecord
from mlebench.records.run_groups import Run

logger = logging.getLogger(__name__)

Kind = Literal["violation", "condition", "note"]
KINDS: tuple[Kind, Kind, Kind] = ("violation", "condition", "note")
VIOLATION, CONDITION, NOTE = KINDS
YES, NO, NOT_ENOUGH = ANSWERS = ("yes", "no", "not enough evidence")  # what a judge says
JUDGE = "judge"
BY_JUDGE = f"{JUDGE}:"  # the prefix of rules whose findings come from a judge
UNCALIBRATED = "uncalibrated"
NOT_GRADED = "not_graded"  # the category of runs whose submission has no score yet
LARGEST = 8 << 20  # bytes of a record
MOST_TOOLS = 20


class Evidence(msgspec.Struct, frozen=True):
    """Where a finding was made, quoted verbatim."""

    file: Text
    quote: Text
    line: Count | None = None


class Finding(msgspec.Struct, frozen=True):
    kind: Kind
    rule: Text  # the name of the rule that found it
    says: Text  # one sentence
    evidence: tuple[Evidence, ...] = ()


class Findings(Record, frozen=True, kw_only=True):
    """What a tool found about a run."""

    tool: Text
    made_at: Time = field(default_factory=now)
    facts: dict[str, Any] = {}  # further facts, such as a category
    findings: list[Finding] = []

    @classmethod
    def of(cls, tool: str, findings: list[Finding], **facts: Any) -> "Findings":
        return cls(tool=tool, facts=facts, findings=findings)

    def write_for(self, run: RunPaths) -> None:
        run.findings.mkdir(exist_ok=True)
        write(run.finding(self.tool), self)


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
                findings = parse(file.read(LARGEST), Findings, folder / name)
        except (UntrustedFileError, PrerequisiteError) as error:
            logger.warning("%s is left out: %s", folder / name, error)
            continue
        if is_about(run.record, findings.made_at, findings.facts):
            yield findings


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
