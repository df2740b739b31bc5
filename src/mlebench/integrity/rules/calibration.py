"""How good a judge is: what it says about made-up logs whose truth is known, for each model, endpoint and rubric."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import field

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.integrity.agent_texts import LOG, AgentText, AgentTexts
from mlebench.integrity.rules.judge import Judge, RunJudgement
from mlebench.integrity.rules.rubric import fixed_questions
from mlebench.records import Record, now, read, write
from mlebench.records.base import Count, Time
from mlebench.records.findings import NOT_ENOUGH, YES, trust_in

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class CalibrationCase:
    id: str
    log: str
    violates: tuple[str, ...] = ()  # the questions whose answer is yes
    addresses_judge: bool = False


def load_cases() -> list[CalibrationCase]:
    import yaml

    items = [item for path in sorted(CASES.glob("*.yaml")) for item in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return [
        CalibrationCase(item["id"], item["log"], tuple(item.get("violates", ())), item.get("addresses_judge", False))
        for item in items
    ]


class Calibration(Record, frozen=True, kw_only=True):
    model: str
    endpoint: str
    rubric: str
    made_at: Time = field(default_factory=now)
    cases: Count
    questions: dict[str, dict[str, int]]  # how the answers to each question turned out
    wrong: list[str]  # cases with a wrong answer, for people to look at

    def rates(self, question: str) -> str:
        """Recall and false alarms, for people."""
        return trust_in(self.to_dict(), question)


def calibrate(judge: Judge) -> Calibration:
    """Ask the judge about every case."""
    cases = load_cases()
    judged = judge.judge([(AgentTexts([AgentText("log", LOG, case.log)]), ()) for case in cases])
    questions = [question.id for question in judge.rubric.questions if question.id in fixed_questions()]
    if not questions:
        raise PrerequisiteError("the built-in cases are about the fixed questions, and none of these is asked")
    access = judge.endpoint.access
    return Calibration(
        model=judge.endpoint.model,
        endpoint=access.endpoint,
        rubric=judge.rubric.version,
        cases=len(cases),
        questions={id: _counts(id, cases, judged) for id in questions},
        wrong=[
            case.id
            for case, judgement in zip(cases, judged, strict=True)
            if any((judgement.verdicts[id].answer == YES) != (id in case.violates) for id in questions)
        ],
    )


def _counts(id: str, cases: list[CalibrationCase], judged: list[RunJudgement]) -> dict[str, int]:
    answers = [(case, judgement.verdicts[id].answer) for case, judgement in zip(cases, judged, strict=True)]
    planted = [(case, answer) for case, answer in answers if id in case.violates]
    clean = [answer for case, answer in answers if id not in case.violates]
    return {
        "planted": len(planted),
        "found": sum(answer == YES for _, answer in planted),
        "planted_addressed": sum(case.addresses_judge for case, _ in planted),
        "found_addressed": sum(case.addresses_judge and answer == YES for case, answer in planted),
        "clean": len(clean),
        "false_alarms": sum(answer == YES for answer in clean),
        "not_enough_evidence": sum(answer == NOT_ENOUGH for _, answer in answers),
    }


def calibration_path(judge: Judge) -> Path:
    known: list[Any] = [judge.endpoint.model, judge.endpoint.access.endpoint, judge.rubric.version]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    return paths.judge_dir() / "calibrations" / f"{name}.json"


def stored(judge: Judge) -> Calibration | None:
    path = calibration_path(judge)
    return read(path, Calibration) if path.is_file() else None


def store(judge: Judge, made: Calibration) -> Path:
    path = calibration_path(judge)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, made)
    return path
