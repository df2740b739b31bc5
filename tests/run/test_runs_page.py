"""docs/runs.md names every field that a record has, and no other."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from conftest_run import SUBMIT

from mlebench.outcomes import RUN_OUTCOMES
from mlebench.run.execute import CANNOT_WORK, FINAL, MAY_BE_RETRIED, NOT_STORED
from mlebench.run.group import RETRIES
from mlebench.run.over_time import FIGURES, OverTime
from mlebench.run.records import Group, GroupRecord, RunRecord
from mlebench.sandbox.base import Limits

PAGE = Path(__file__).parents[2] / "docs" / "runs.md"


def _named(heading: str) -> list[str]:
    """The first cells of the table that follows a heading, without its own heading."""
    text = PAGE.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table, heading
    return [row.split("|")[1].strip().strip("`") for row in table[0].splitlines()[2:]]


def test_fields_of_records() -> None:
    assert _named("group.json") == ["schema", *(item.name for item in fields(GroupRecord))]
    assert _named("run.json") == ["schema", *(item.name for item in fields(RunRecord))]
    assert _named("snapshots/scores.json") == ["schema", *(item.name for item in fields(OverTime))]
    limits = next(
        row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| `limits` | of each")
    )
    assert re.findall(r"`(\w+)`", limits)[1:] == [item.name for item in fields(Limits)]


def test_figures_of_points() -> None:
    (row,) = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| `points`")]
    assert re.findall(r"`(\w+)`", row) == ["points", "seconds", *FIGURES]


def test_words_and_codes() -> None:
    assert _named("How a run ends") == list(RUN_OUTCOMES)
    assert _named("One run, one command") == [str(code) for code in (FINAL, NOT_STORED, MAY_BE_RETRIED, CANNOT_WORK)]
    assert _named("Resume and retry") == list(RETRIES)


def test_what_a_real_run_records_is_explained(run: Callable[..., Group]) -> None:
    (one,) = run(SUBMIT).runs()
    assert one.record.conditions.keys() <= set(_named("Conditions"))
    assert one.record.attempts[0].keys() <= set(_named("Attempts"))
    allowed = PAGE.read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    assert [path.name for path in one.paths.root.iterdir() if path.name not in allowed] == []
