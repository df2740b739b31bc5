"""What a tool found out about a run: one record for each tool, in the run's folder `findings/`."""

from dataclasses import asdict, dataclass, field
from typing import Any

from mlebench.paths import RunPaths
from mlebench.records import Record, now

VIOLATION, CONDITION, NOTE = KINDS = ("violation", "condition", "note")


@dataclass(frozen=True)
class Evidence:
    """Where a finding stands, word for word."""

    file: str
    quote: str
    line: int | None = None


@dataclass(frozen=True)
class Finding:
    kind: str  # one of KINDS
    rule: str  # the name of the rule that found it
    says: str  # in a sentence
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Findings(Record):
    tool: str
    made_at: str = field(default_factory=now)
    facts: dict[str, Any] = field(default_factory=dict)  # what else the tool has to say, such as a category
    findings: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, tool: str, found: list[Finding], **facts: Any) -> "Findings":
        return cls(tool=tool, facts=facts, findings=[asdict(one) for one in found])

    def write_for(self, run: RunPaths) -> None:
        run.findings.mkdir(exist_ok=True)
        self.write(run.finding(self.tool))
