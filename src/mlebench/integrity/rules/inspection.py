"""`mlebench inspect rules`: detectors first, a judge on top; one record for each run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mlebench.agents.folders import environment_dir
from mlebench.core.isolate import IsolatedCallError
from mlebench.integrity.agent_texts import AgentTexts, texts_of
from mlebench.integrity.isolated import inspect_isolated
from mlebench.integrity.rules.calibration import Calibration
from mlebench.integrity.rules.detectors import DetectorInput, detect
from mlebench.integrity.rules.judge import Judge
from mlebench.integrity.subjects import FindingsWriter, Subject
from mlebench.records.findings import BY_JUDGE, JUDGE, KINDS, NOT_ENOUGH, NOTE, UNCALIBRATED, YES, Finding, Findings

TOOL = "rules"


@dataclass(frozen=True)
class RulesInspection:
    subject: Subject
    record: Findings

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.record.findings)

    @property
    def answers(self) -> dict[str, str]:
        return self.record.facts.get(JUDGE, {}).get("answers", {})

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.subject.name, "competition": self.subject.competition, **self.record.to_dict()}


def inspect_rules(
    subjects: Iterable[Subject], data_dir: Path, judge: Judge | None = None, calibration: Calibration | None = None
) -> Iterator[RulesInspection]:
    """Yield what detectors, and a judge if there is one, find about each subject, and write it to the runs' folders.

    `data_dir` has the data of subjects whose records do not name it. Raises PrerequisiteError if the judge's endpoint
    refuses to answer.
    """
    writer = FindingsWriter()
    for subject in subjects:
        case = DetectorInput(subject, data_dir)
        try:
            findings, facts = inspect_isolated(detect, case)
        except IsolatedCallError as error:
            findings, facts = [Finding(NOTE, "not-inspected", f"It could not be inspected: {error}.")], {}
        if judge is not None:
            answers, facts[JUDGE] = _asked(judge, case, calibration)
            findings += answers
        record = Findings.of(TOOL, findings, **facts)
        writer.write(subject, record)
        yield RulesInspection(subject, record)


def _asked(judge: Judge, case: DetectorInput, calibration: Calibration | None) -> tuple[list[Finding], dict[str, Any]]:
    agents_texts = [(environment_dir() / "instructions.txt").read_text(encoding="utf-8")]
    agents_texts += [case.competition.description] if case.competition else []
    try:
        texts = inspect_isolated(texts_of, case.subject)
    except IsolatedCallError:
        texts = AgentTexts(cut=["everything"])
    (judged,) = judge.judge([(texts, agents_texts)])
    facts = {
        "model": judge.endpoint.model,
        "endpoint": judge.endpoint.access.endpoint,
        "rubric": judge.rubric.version,
        "calibration": msgspec.to_builtins(calibration) if calibration else UNCALIBRATED,
        **judged.to_dict(),
    }
    return list(judged.findings(judge.endpoint.model)), facts


def rates(
    inspected: list[RulesInspection], judge: Judge | None, calibration: Calibration | None
) -> list[dict[str, Any]]:
    """How many runs have findings of each kind, what the judge says how often, and how far to trust it."""
    rows: list[dict[str, Any]] = [
        {"what": f"a {kind}, by detectors", "runs": _with_kind(inspected, kind), "of": len(inspected)} for kind in KINDS
    ]
    for question in judge.rubric.questions if judge else ():
        answers = [inspection.answers.get(question.id) for inspection in inspected]
        rows.append(
            {
                "what": f"judge says yes: {question.id}",
                "runs": answers.count(YES),
                "of": len(inspected),
                "not_enough_evidence": answers.count(NOT_ENOUGH),
                "judge": calibration.rates(question.id) if calibration else UNCALIBRATED,
            }
        )
    return rows


def _with_kind(inspected: list[RulesInspection], kind: str) -> int:
    return sum(
        any(finding.kind == kind and not finding.rule.startswith(BY_JUDGE) for finding in subject.record.findings)
        for subject in inspected
    )
