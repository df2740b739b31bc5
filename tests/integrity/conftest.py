from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.endpoints import Endpoint, endpoint
from support.records import write_record

from mlebench.core.paths import GroupPaths
from mlebench.integrity.subjects import Subject, of_run
from mlebench.records import now
from mlebench.records.group import GroupRecord
from mlebench.records.run import ENDED, RunRecord
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition


@pytest.fixture
def server() -> Iterator[Endpoint]:
    """A model's endpoint."""
    with endpoint() as found:
        yield found


@pytest.fixture
def ended_run(titanic: Competition, tmp_path: Path) -> Callable[..., Subject]:
    """Makes a run group with one run that has ended, and these files in its folder."""

    def make(files: dict[str, str | bytes], conditions: dict[str, Any] | None = None, **asked: Any) -> Subject:
        where = GroupPaths(tmp_path / "runs" / "2026-01-01_run-group_x")
        folder = where.run(titanic.id, "0001").root
        for name, content in {"run.log": "", **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        facts: dict[str, Any] = {
            "id": where.root.name,
            "created_at": now(),
            "agent": {"name": "x"},
            "agent_source": "x",
            "competitions": [titanic.id],
            "seeds": 1,
            "data_dir": str(titanic.paths.data_dir),
            "profile": "v1",
            "twin": True,
            "sandbox": "process",
            "limits": {"seconds": 60},
        }
        write_record(where.record, GroupRecord, **facts | asked)
        write_record(
            where.run(titanic.id, "0001").record,
            RunRecord,
            run_id="0001",
            competition=titanic.id,
            seed=0,
            state=ENDED,
            ended="done",
            planned_at=now(),
            conditions=conditions or {},
        )
        group = Group.read(where.root)
        return of_run(Run.read(folder), group)

    return make
