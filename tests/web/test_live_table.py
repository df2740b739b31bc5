"""The live table of `mlebench run`: what it shows while runs are in progress, at the widths of terminals."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from support.endpoints import call_of, counted
from support.sites import make_group

from mlebench.cli.live import live_table
from mlebench.core.paths import RUN_LOG, usage_file
from mlebench.gateway.prices import TokenUsage
from mlebench.records.run_groups import Group

IDS = ("jigsaw-unintended-bias-in-toxicity-classification", "leaf-classification")


def _shown(group: Group, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(live_table(group, width))
    return file.getvalue().splitlines()


@pytest.fixture
def group(tmp_path: Path) -> Group:
    """One run that has ended and one that prints long lines, both with a model."""
    root = make_group(tmp_path / "runs", "caller", IDS, skill=0.6, seeds=1, states=("ended", "running"))
    ended, running = sorted(Group.read(root).runs(), key=lambda run: run.record.state)
    ended.write(model=counted(tmp_path, call_of("m", TokenUsage(input=54_321, output=12_345))))
    attempt = running.record.last_attempt
    assert attempt is not None
    work = running.paths.group.work(attempt.token)
    usage_file(work).parent.mkdir(parents=True, exist_ok=True)
    usage = counted(tmp_path, *[call_of("m", TokenUsage(input=1000, output=100))] * 7)
    usage_file(work).write_bytes(msgspec.json.encode(usage))
    (work / RUN_LOG).write_text(f"first\nlast {json.dumps(['x' * 50] * 20)}\n")
    return Group.read(root)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_calls_tokens_and_cost_are_shown_however_long_lines_are(group: Group, width: int) -> None:
    title, head, *rows = _shown(group, width)
    assert "1 of 2 runs have ended" in title
    names = ("competition", "seed", "state", "time left", "calls", "tokens", "cost", "last line")
    assert [name for name in names if name not in head] == []
    (ended,) = (row for row in rows if "jigsaw" in row)
    assert {"finished", "1", "66,666", "$17.78", "score"} <= {*ended.split()}
    (running,) = (row for row in rows if "leaf-c" in row)
    assert {"running", "7", "7,700", "$1.40", "last"} <= {*running.split()}
    assert max(map(len, rows)) <= width


def test_without_a_model_there_are_no_columns_for_it(tmp_path: Path) -> None:
    group = Group.read(make_group(tmp_path / "runs", "plain", IDS, seeds=1, states=("running",)))
    _, head, *rows = _shown(group, 80)
    assert "calls" not in head
    assert sum("running" in row for row in rows) == len(IDS)
