"""What `mlebench inspect` found about runs, counted for each agent, and how far a judge can be trusted."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mlebench.records.findings import ANSWERS, BY_JUDGE, JUDGE, KINDS, NOT_ENOUGH, YES, Findings, trust_in
from mlebench.report.types import RunOutcome, without_unprintable

CLAIMED = "claimed"
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")  # names of tools and categories
_MOST_QUESTIONS = 50


def summarize_findings(records: Iterable[Findings]) -> dict[str, dict[str, Any]]:
    """What each tool says about a run, in short: findings of each kind, its category, the answers of a judge."""
    return {record.tool: _summary(record) for record in records if _WORD.fullmatch(record.tool)}


def _summary(record: Findings) -> dict[str, Any]:
    kinds = Counter(finding.kind for finding in record.findings if not finding.rule.startswith(BY_JUDGE))
    category = record.facts.get("category")
    return {
        **{kind: kinds[kind] for kind in KINDS},
        "category": category if isinstance(category, str) and _WORD.fullmatch(category) else None,
        JUDGE: _judged(record.facts.get(JUDGE)),
    }


def _judged(judge: Any) -> dict[str, Any] | None:
    if not isinstance(judge, dict) or not isinstance(answers := judge.get("answers"), dict):
        return None
    known = dict(islice(((id, answer) for id, answer in answers.items() if answer in ANSWERS), _MOST_QUESTIONS))
    return {
        "model": _name(judge.get("model")),
        "rubric": _name(judge.get("rubric")),
        "answers": {_name(id): answer for id, answer in known.items()},
        "trust": {_name(id): trust_in(judge.get("calibration"), id) for id in known},
    }


def _name(value: Any) -> str:
    return without_unprintable(str(value)[:80])


@dataclass(frozen=True)
class FindingCount:
    """How many of an agent's runs have something found about them."""

    tool: str
    finding: str
    runs: int
    of: int  # runs that the tool has inspected
    not_inspected: int  # the agent's other runs
    trust: str | None = None  # for a judge: its calibration, or that it has none; for a bundle's findings: claimed
    not_enough_evidence: int | None = None  # for a judge: runs it could not decide

    @property
    def share(self) -> float:
        """In percent."""
        return 100 * self.runs / self.of


def count_findings(outcomes: Sequence[RunOutcome], *, claimed: bool = False) -> list[FindingCount]:
    """For each tool, how many runs have findings of each kind or fall into each category, and what a judge says."""
    tools = dict.fromkeys(tool for outcome in outcomes for tool in outcome.findings or {})
    rows = []
    for tool in sorted(tools):
        summaries = [outcome.findings[tool] for outcome in outcomes if outcome.findings and tool in outcome.findings]
        for row in (*_detector_counts(summaries), *_judge_counts(summaries)):
            trust = "; ".join(part for part in (CLAIMED if claimed else "", row.pop("trust", "")) if part)
            rows.append(FindingCount(tool=tool, not_inspected=len(outcomes) - row["of"], trust=trust or None, **row))
    return rows


def _detector_counts(summaries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    categories = Counter(summary["category"] for summary in summaries if summary["category"])
    if categories:
        counted = sorted(categories.items(), key=lambda item: (-item[1], item[0]))
    else:
        counted = [(kind, sum(summary[kind] > 0 for summary in summaries)) for kind in KINDS]
    yield from ({"finding": name, "runs": count, "of": len(summaries)} for name, count in counted)


def _judge_counts(summaries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answers from different judges, rubrics or calibrations are counted separately."""
    answers: dict[tuple[str, ...], list[str]] = {}
    for judge in (summary[JUDGE] for summary in summaries if summary[JUDGE]):
        for id, answer in judge["answers"].items():
            answers.setdefault((id, judge["model"], judge["rubric"], judge["trust"][id]), []).append(answer)
    for (id, model, _, trust), said in answers.items():
        yield {
            "finding": f"judge {model} says yes: {id}",
            "runs": said.count(YES),
            "of": len(said),
            "not_enough_evidence": said.count(NOT_ENOUGH),
            "trust": trust,
        }
