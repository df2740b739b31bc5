"""How runs end and how submissions are judged is listed once, and everybody reads the list in the same way."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import mlebench
from mlebench.core import outcomes
from mlebench.core.outcomes import GRADED, MISSING, RUN_OUTCOMES, STATUSES, UNGRADED_STATUSES
from mlebench.grade import aggregate_reports
from mlebench.grade.in_process import Verdict, ungraded_report, with_verdict
from mlebench.integrity.failures.categories import classify
from mlebench.integrity.subjects import Subject
from mlebench.records.run import ENDED, RunRecord
from mlebench.records.run_groups import Run
from mlebench.registry import Competition
from mlebench.report.inputs import Inputs
from mlebench.report.standings import make_standings
from mlebench.scoring import CompetitionReport
from mlebench.web.record_values import result_of

SOURCE = Path(mlebench.__file__).parent
WORDS = {*RUN_OUTCOMES, *STATUSES}
TELLING = {word for word in WORDS if "_" in word}  # the others also mean other things


def spelled_lists(tree: ast.AST) -> Iterator[set[str]]:
    """The words in each list, set or mapping of a program that consists of outcomes or statuses."""
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items) | ast.Dict(keys=items):
                texts = [item.value for item in items if isinstance(item, ast.Constant)]
                words = {text for text in texts if text in WORDS}
                if len(words & TELLING) > 1 or (len(words) > 1 and len(words) == len(items)):
                    yield words


def test_a_list_that_is_spelled_again_is_noticed() -> None:
    assert list(spelled_lists(ast.parse('x = ("invalid", "missing")'))) == [{"invalid", "missing"}]
    assert list(spelled_lists(ast.parse('{"agent_error": 1, "over_disk": 2, "x": 3}'))) == [
        {"agent_error", "over_disk"}
    ]
    assert list(spelled_lists(ast.parse('("gold", "invalid", "missing")'))) == []


def test_no_other_module_spells_such_a_list() -> None:
    again = {
        str(path.relative_to(SOURCE)): words
        for path in SOURCE.rglob("*.py")
        if path != Path(outcomes.__file__) and (words := list(spelled_lists(ast.parse(path.read_text()))))
    }
    assert again == {}


def test_no_template_and_no_script_spells_them() -> None:
    pattern = re.compile("|".join(sorted(TELLING)))
    files = [path for kind in ("html", "js", "css") for path in (SOURCE / "web").rglob(f"*.{kind}")]
    assert files
    assert {path.name: words for path in files if (words := pattern.findall(path.read_text()))} == {}


def report_with(status: str, competition: Competition) -> CompetitionReport:
    blank = ungraded_report(Path("submission.csv"), competition)
    report = with_verdict(blank, Verdict(status, 0.6 if status == GRADED else None, reason="because"))
    return replace(report, source="twin")


@pytest.mark.parametrize("status", STATUSES)
def test_grade_report_integrity_and_pages_agree_on_every_status(
    status: str, titanic: Competition, tmp_path: Path
) -> None:
    """A grading timeout of ours, for example, must not count as the agent's failure anywhere."""
    report = report_with(status, titanic)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(aggregate_reports([report])))
    inputs = Inputs(tmp_path)
    inputs.add(str(path))
    (entry,) = make_standings(inputs).entries
    is_ours = status in UNGRADED_STATUSES
    assert entry.entry.outcomes[0].missing == (status if is_ours else None)
    assert entry.scopes[0].missing == is_ours

    record = RunRecord(
        run_id="r",
        competition=titanic.id,
        seed=0,
        state=ENDED,
        ended="finished",
        planned_at=None,
        report=report.to_record(),
        submission="none" if status == MISSING else "present",
    )
    run = Run(cast("Any", SimpleNamespace(findings=tmp_path / "findings")), record)
    category = classify(Subject("group", "r", titanic.id, None, (), (), run)).category
    assert (category == "infrastructure") == is_ours
    assert (result_of(run) == "missing") == is_ours
