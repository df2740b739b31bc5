"""The pages about runs name every field, word and exit code that there is, and no other."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from support.run_fixtures import SUBMIT

from mlebench.core.outcomes import RETRIES, RUN_OUTCOMES
from mlebench.records.group import GroupRecord, Limits
from mlebench.records.run import Attempt, RunConditions, RunRecord
from mlebench.records.run_groups import Group
from mlebench.records.snapshots import SnapshotScore, SnapshotScores
from mlebench.run.retry_rules import CANNOT_WORK, FINAL, MAY_BE_RETRIED, NOT_STORED

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "reference/records.md"
RUNS = DOCS / "understanding/runs.md"


def _named(heading: str, page: Path = RECORDS) -> list[str]:
    """What the first cells of the table after a heading name, without the table's own heading."""
    text = page.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table, heading
    cells = [row.split("|")[1].strip() for row in table[0].splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell) or [cell]]


def test_fields_of_records() -> None:
    assert _named("group.json") == [*GroupRecord.__struct_fields__]
    assert _named("run.json") == [*RunRecord.__struct_fields__]
    assert _named("snapshots/scores.json") == [*SnapshotScores.__struct_fields__]
    limits = next(
        row for row in RECORDS.read_text(encoding="utf-8").splitlines() if row.startswith("| `limits` | of each")
    )
    assert re.findall(r"`(\w+)`", limits)[1:] == [item.name for item in fields(Limits)]


def test_figures_of_points() -> None:
    (row,) = [row for row in RECORDS.read_text(encoding="utf-8").splitlines() if row.startswith("| `points`")]
    assert re.findall(r"`(\w+)`", row) == ["points", *SnapshotScore.__struct_fields__]


def test_words_and_codes() -> None:
    assert _named("How a run ends") == list(RUN_OUTCOMES)
    assert _named("One run, one command", RUNS) == [
        str(code) for code in (FINAL, NOT_STORED, MAY_BE_RETRIED, CANNOT_WORK)
    ]
    assert _named("Resume and retry", RUNS) == list(RETRIES)


def test_what_a_real_run_records_is_explained(run: Callable[..., Group]) -> None:
    (one,) = run(SUBMIT).runs()
    assert set(_named("Conditions")) == set(RunConditions.__struct_encode_fields__)
    assert set(_named("Attempts")) == set(Attempt.__struct_encode_fields__)
    allowed = RECORDS.read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    assert [path.name for path in one.paths.root.iterdir() if path.name not in allowed] == []
