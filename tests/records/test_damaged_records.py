"""Records whose fields are damaged: nothing breaks, the reason is shown, and no other run is hidden.

A program walks the types and puts null, another type, a huge number, a long text, nothing, and something extra into
every field of every record; each time, commands that read it must say what is wrong or show the run.
"""

import dataclasses
import json
import os
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any

import msgspec
import pytest
from support.forged_bundles import write_group
from support.records import TIME, write_record

from mlebench.cli import main
from mlebench.core.processes import Process
from mlebench.records.findings import NOTE, Evidence, Finding, Findings
from mlebench.records.group import GroupRecord, ModelFacts
from mlebench.records.run import Attempt, Collection, Omission, ResourceUse, RunConditions, RunRecord
from mlebench.records.run_groups import Group
from mlebench.records.snapshots import SnapshotScores
from mlebench.records.usage import BudgetUsage, CallCounts, ModelUsage
from mlebench.registry import Competition

ID = "spaceship-titanic"
WAYS = int(os.environ.get("MLEBENCH_DAMAGES", "1"))
Path_ = tuple[str | int, ...]
REMOVED = object()
DAMAGES: tuple[Any, ...] = (
    None,
    {"another": "type"},
    ["another type"],
    "another type",
    True,
    -1,
    10**400,
    1e308,
    "x" * 2_000_000,
    "\x1b[31m\udcff/../..",
    REMOVED,
)
READERS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("runs", "list", "GROUP"),
    ("report", "GROUP", "--format", "json"),
    ("report", "GROUP", "--format", "html", "-o", "PAGES"),
    ("inspect", "failures", "GROUP"),
    ("inspect", "rules", "GROUP"),
    ("bundle", "make", "GROUP", "-o", "BUNDLE"),
    ("runs", "show", "RUN"),
    ("runs", "show", "RUN", "--story"),
    ("run", "--resume", "GROUP"),
    ("grade", "GROUP"),
)


def _structs(kind: Any) -> Iterator[tuple[Path_, type]]:
    """The structs in a type, each with the steps to it in JSON; a list is represented by its first item."""
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)):
        yield (), kind
        for name, hint in typing.get_type_hints(kind).items():
            yield from (((name, *steps), inner) for steps, inner in _structs(hint))
    elif typing.get_origin(kind) in (typing.Union, UnionType):
        for option in typing.get_args(kind):
            yield from _structs(option)
    elif typing.get_origin(kind) in (list, tuple):
        yield from (((0, *steps), inner) for steps, inner in _structs(typing.get_args(kind)[0]))
    elif typing.get_origin(kind) is dict:
        yield from ((("m", *steps), inner) for steps, inner in _structs(typing.get_args(kind)[1]))


def fields_of(kind: type[msgspec.Struct]) -> list[Path_]:
    """Every field of a record, and one that it does not have in each of its structs."""
    return [
        (*steps, name)
        for steps, struct in _structs(kind)
        for name in (*(name for name in typing.get_type_hints(struct) if not name.startswith("_")), "extra")
    ]


def damaged(content: bytes, steps: Path_, damage: Any) -> bytes:
    data = json.loads(content)
    inner = data
    for step in steps[:-1]:
        inner = inner[step]
    if damage is REMOVED:
        inner.pop(steps[-1], None)
    else:
        inner[steps[-1]] = damage
    return json.dumps(data).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def group(titanic: Competition, tmp_path_factory: pytest.TempPathFactory) -> Group:
    """A group of two runs, the first of which has everything that a record can hold."""
    usage = ModelUsage(calls=1, budget=BudgetUsage(limit=1, unit="usd"), models={"m": CallCounts(calls=1)})
    sample = titanic.sample_submission.read_bytes()
    model = ModelFacts(provider="openai", endpoint="http://x/v1", models=["m"])
    root = tmp_path_factory.mktemp("damaged")
    made = write_group(root / "runs", titanic, [sample, sample], network="model", model=model)
    run = next(made.runs())
    attempt = Attempt(
        number=1, token="t", host="h", started_at=TIME, agent_started_at=TIME, supervisor=Process("h", 1, 1),
        ended="finished", ended_at=TIME, seconds=1.0, model=usage,
    )  # fmt: skip
    conditions = RunConditions(
        sandbox="bubblewrap", sealed=True, limits=made.record.limits, used=ResourceUse(disk=1),
        machine=made.record.machine, collected=Collection(left_out=[Omission(name="a", reason="b")]),
    )  # fmt: skip
    run.write(attempts=[attempt], conditions=conditions, model=usage, started_at=TIME, ended_at=TIME)
    points = [{"seconds": 1, "score": 0.5, "status": "graded"}]
    run.paths.snapshots.mkdir()
    same = {"run_id": run.record.run_id, "competition": titanic.id, "graded_at": TIME}
    write_record(run.paths.over_time, SnapshotScores, **same, points=points)
    Findings.of("rules", [Finding(NOTE, "a-rule", "It says so.", (Evidence("run.log", "hello", 1),))]).write_for(
        run.paths
    )
    return Group.read(made.paths.root)


def files_of(group: Group) -> dict[type[msgspec.Struct], Path]:
    run = next(group.runs())
    return {
        GroupRecord: group.paths.record,
        RunRecord: run.paths.record,
        SnapshotScores: run.paths.over_time,
        Findings: run.paths.finding("rules"),
    }


@pytest.fixture
def call(group: Group, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[tuple[str, ...]], str]:
    """Run a command in this process; whatever it says, it must not be a traceback."""
    run = next(group.runs()).paths.root
    words = {"GROUP": str(group.paths.root), "RUN": str(run), "PAGES": str(tmp_path / "pages")}
    words["BUNDLE"] = str(tmp_path / "x.tar.gz")

    def call(reader: tuple[str, ...]) -> str:
        arguments = [words.get(word, word) for word in reader]
        if reader[0] == "runs" and len(reader) == 1:
            arguments += ["--runs-dir", str(group.paths.root.parent)]
        with pytest.raises(SystemExit) as end:
            main(arguments)
        said = "".join(capfd.readouterr())
        assert end.value.code in (None, 0, 1, 2), (reader, end.value.code, said)
        assert "Traceback" not in said, reader
        return said

    return call


@pytest.mark.timeout(300 * WAYS)
@pytest.mark.parametrize("kind", [GroupRecord, RunRecord, SnapshotScores, Findings])
def test_no_damage_to_a_field_breaks_a_reader_or_hides_the_other_run(
    kind: type[msgspec.Struct], group: Group, call: Callable[[tuple[str, ...]], str]
) -> None:
    path = files_of(group)[kind]
    whole = path.read_bytes()
    backup = {file: file.read_bytes() for file in group.paths.root.rglob("*.json")}
    turn = 0
    try:
        for number, steps in enumerate(fields_of(kind)):
            for way in range(min(WAYS, len(DAMAGES))):
                damage = DAMAGES[(number + way * 5) % len(DAMAGES)]
                try:
                    path.write_bytes(damaged(whole, steps, damage))
                except (KeyError, IndexError, TypeError, AttributeError):  # it holds no such part
                    continue
                call(READERS[turn % len(READERS)])
                if kind is RunRecord:
                    rows = call(("runs", "list", "GROUP")).count(ID)
                    assert rows >= 2, (steps, damage)
                turn += 1
                for file, content in backup.items():
                    file.write_bytes(content)
    finally:
        for file, content in backup.items():
            file.write_bytes(content)
        for extra in set(group.paths.root.rglob("*_grading_report.json")) - backup.keys():
            extra.unlink()
    assert turn > len(READERS)
