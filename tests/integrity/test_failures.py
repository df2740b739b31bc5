import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.integrity.failures import Verdict, classify
from mlebench.integrity.subjects import of_run
from mlebench.registry import Registry
from mlebench.run.records import Group, GroupRecord, Run

FROZEN = Path(__file__).parent / "failures"
CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FROZEN.glob("*.json"))]
NAMED = {case["name"]: case for case in CASES}


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twins that the frozen runs were made on."""
    folder = tmp_path_factory.mktemp("data")
    for id in sorted({case["competition"] for case in CASES}):
        prepare(Registry(str(folder)).get_competition(id), TwinSource())
    return folder


Thaw = Callable[..., Group]


@pytest.fixture(scope="session")
def thaw(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Thaw:
    """A run group of frozen runs, as it was on disk."""

    def call(*cases: dict[str, Any], **facts: Any) -> Group:
        root = tmp_path_factory.mktemp("runs") / "2026-01-01T00-00-00-GMT_run-group_agent"
        root.mkdir()
        record = GroupRecord(
            id=root.name,
            created_at="2026-01-01T00:00:00+00:00",
            agent={"name": "agent"},
            agent_source="agent",
            competitions=sorted({case["competition"] for case in cases}),
            seeds=1,
            data_dir=str(data_dir),
            profile="v1",
            twin=True,
            sandbox="process",
            limits={},
        ).changed(**facts)
        record.write(root / "group.json")
        for case in cases:
            folder = root / f"{case['competition']}_{case['record']['run_id']}"
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps(case["record"]))
            for name, text in case["files"].items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text, newline="", encoding="utf-8")
        return Group.read(root)

    return call


def verdicts(group: Group) -> Iterator[tuple[Run, Verdict]]:
    for run in group.runs():
        yield run, classify(of_run(run, group))


def mistakes(thaw: Thaw, cases: list[dict[str, Any]]) -> list[str]:
    """The cases that get another category or cause than the one they were made for, or lack what else they were."""
    labels = {case["record"]["run_id"]: case for case in cases}
    wrong = []
    for run, found in verdicts(thaw(*cases)):
        case = labels[run.record.run_id]
        if (found.category, found.cause) != (case["category"], case["cause"]) or not {*case["also"]} <= {*found.also}:
            wrong.append(f"{case['name']}: {found.category}, {found.cause}, also {found.also}: {found.says}")
    return wrong


def test_rules_fit_the_runs_they_were_written_for(thaw: Thaw) -> None:
    assert mistakes(thaw, [case for case in CASES if not case["held_out"]]) == []
