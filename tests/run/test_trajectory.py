"""The story of a run: what an agent wrote is hostile, yet it can be shown."""

import json
import os
import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.records import report_of, write_record
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.waiting import wait_until

from mlebench.cli.timeline import timeline_lines
from mlebench.core.paths import RunPaths, model_calls
from mlebench.core.paths import trajectory as trajectory_file
from mlebench.records import timeline, untrusted_lines
from mlebench.records.group import GroupRecord
from mlebench.records.run import Attempt, RunRecord
from mlebench.records.run_groups import Group, Run
from mlebench.records.timeline import Timeline, read_timeline
from mlebench.records.usage import ModelUsage
from mlebench.registry import Competition

BEGUN = 1_800_000_000.0


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@pytest.fixture
def ended(tmp_path: Path) -> Run:
    """A run of 100 seconds that has ended, with nothing in its folder."""
    root = tmp_path / "group" / "spaceship-titanic_1"
    (root / "logs").mkdir(parents=True)
    record = RunRecord(
        run_id="1",
        competition="spaceship-titanic",
        seed=0,
        state="ended",
        ended="finished",
        attempts=[Attempt(number=1, token="t", host="h", started_at=_iso(BEGUN))],
        model=ModelUsage(calls=2, input_tokens=100, cost=0.25),
        planned_at=_iso(BEGUN - 9),
        started_at=_iso(BEGUN),
        ended_at=_iso(BEGUN + 100),
    )
    _write_group(root.parent, network="model")
    return Run(RunPaths(root), record)


def _write_group(folder: Path, **facts: Any) -> None:
    write_record(
        folder / "group.json",
        GroupRecord,
        id="group",
        created_at=_iso(BEGUN - 9),
        agent={"name": "mine"},
        agent_source="mine",
        competitions=["spaceship-titanic"],
        seeds=1,
        data_dir="data",
        profile="v1",
        twin=True,
        sandbox="bubblewrap",
        limits={"seconds": 60},
        **facts,
    )


def _write(path: Path, *lines: Any) -> None:
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )


def _shown(timeline: Timeline) -> str:
    return "\n".join(timeline_lines(timeline))


STEPS = [
    {"kind": "start", "time": BEGUN + 1, "agent": "mine", "model": None},
    {"kind": "thought", "time": BEGUN + 2, "step": 1, "text": "I look around."},
    {"kind": "action", "time": BEGUN + 3, "step": 1, "name": "bash", "text": "ls"},
    {"kind": "output", "time": BEGUN + 4, "step": 1, "text": "train.csv", "exit_code": 0, "seconds": 0.25},
    {
        "kind": "call",
        "time": BEGUN + 5,
        "step": 1,
        "model": "m",
        "input_tokens": 10,
        "cached_tokens": None,
        "cost": None,
    },
    {"kind": "validation", "time": BEGUN + 6, "step": 2, "metric": "auc", "value": 0.75, "higher_is_better": True},
    {"kind": "submission", "time": BEGUN + 7, "step": 2, "path": "submission.csv"},
    {"kind": "dream", "time": BEGUN + 8, "step": 2, "sheep": ["electric"]},
    {"kind": "end", "time": BEGUN + 9, "reason": "done"},
]


def test_every_kind_is_shown_in_order(ended: Run) -> None:
    _write(trajectory_file(ended.paths.logs), *STEPS)
    ended.paths.snapshots.mkdir()
    (ended.paths.snapshots / "00000006.5.csv").write_text("id,a\n")
    timeline = read_timeline(ended)
    assert timeline.left_out == []
    assert [event.title for event in timeline.events] == [
        "the run begins: spaceship-titanic, seed 0",
        "agent mine",
        "thought",
        "bash",
        "output, exit code 0, 0.2 s",
        "auc = 0.75 (higher is better)",
        "submission of 5 bytes",
        "submission submission.csv",
        "dream",
        "the agent ends: done",
        "the run ends: finished",
    ]
    text = _shown(timeline)
    for words in (
        "I look around.",
        "train.csv",
        'sheep: ["electric"]',
        "0:00:03  step 1    action: bash",
    ):
        assert words in text


def test_the_gateway_s_account_of_calls_replaces_the_agent_s(ended: Run) -> None:
    _write(trajectory_file(ended.paths.logs), *STEPS)
    call = {"function": {"name": "f", "arguments": "{}"}}
    answer = {"choices": [{"message": {"content": "Look there.", "tool_calls": [call]}}]}
    tokens = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 20, "reasoning_tokens": 5}
    good = {"time": BEGUN + 4.5, "seconds": 2.0, "model": "big", "status": 200, **tokens, "cost": 0.25}
    bad = {"time": BEGUN + 5, "seconds": 0.1, "model": "big", "status": 429, "error": "slower", "cost": None}
    # The trace has calls in the order in which they ended, and says when they began.
    _write(model_calls(ended.paths.logs), bad, good | {"request": {}, "answer": answer})
    timeline = read_timeline(ended)
    calls = [event for event in timeline.events if event.kind == "call"]
    assert [event.title for event in calls] == [
        "big, 100 tokens in (60 cached), 20 out (5 reasoning), $0.2500, 2.0 s",
        "big, status 429, 0.1 s",
    ]
    assert [event.text for event in calls] == ["Look there.\nf {}", "slower"]
    assert "according to the gateway: 2 calls, 100 tokens in, $0.2500" in _shown(timeline)


def test_without_a_gateway_the_agent_is_believed_and_cannot_forge_a_trace(ended: Run) -> None:
    _write_group(ended.paths.root.parent, network="none")
    _write(trajectory_file(ended.paths.logs), *STEPS)
    _write(model_calls(ended.paths.logs), {"time": BEGUN, "model": "forged"})
    timeline = read_timeline(ended)
    assert [event.title for event in timeline.events if event.kind == "call"] == ["m, 10 tokens in"]
    assert "according to the agent: 1 calls, 10 tokens in, cost unknown" in _shown(timeline)


def test_times_outside_the_run_do_not_reorder_the_story(ended: Run) -> None:
    times = [BEGUN + 50, 0, "soon", None, 1e300, float("nan"), -5, BEGUN + 60]
    _write(
        trajectory_file(ended.paths.logs),
        *({"kind": "thought", "time": at, "text": str(n)} for n, at in enumerate(times)),
    )
    thoughts = [event for event in read_timeline(ended).events if event.kind == "thought"]
    assert [event.text for event in thoughts] == [str(n) for n in range(len(times))]
    assert [event.time - BEGUN for event in thoughts] == [50, 50, 50, 50, 50, 50, 50, 60]


ATTACKS = "\x1b[2Jgone\x1b]0;title\x07 \x9b31m \u202etxt.exe \r\b\x00 \ud800 \u2028 <b>bold</b> [red]x[/red]"


def test_texts_cannot_control_a_terminal(ended: Run) -> None:
    kinds = ["thought", "action", "output", "end", "call", ATTACKS]
    keys = ("text", "name", "reason", "model", "exit_code", "metric", ATTACKS)
    _write(
        trajectory_file(ended.paths.logs),
        *({"kind": kind, "time": BEGUN, **dict.fromkeys(keys, ATTACKS)} for kind in kinds),
    )
    text = _shown(read_timeline(ended))
    assert "gone" in text
    assert "<b>bold</b> [red]x[/red]" in text
    assert not [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert "\u202e" not in text
    text.encode()


def test_long_texts_lose_their_middle_and_say_so(ended: Run) -> None:
    _write(trajectory_file(ended.paths.logs), {"kind": "output", "time": BEGUN, "text": "a" * 60_000 + "b" * 60_000})
    (event,) = (event for event in read_timeline(ended).events if event.kind == "output")
    assert event.cut == 20_000
    assert "… 20000 characters …" in event.text
    assert (event.text[0], event.text[-1]) == ("a", "b")
    shown = list(timeline_lines(read_timeline(ended)))
    assert max(map(len, shown)) < 200
    _write(trajectory_file(ended.paths.logs), {"kind": "output", "time": BEGUN, "text": "x\n" * 1000})
    assert "… 988 lines …" in _shown(read_timeline(ended))


def test_lines_that_cannot_be_read_are_counted(ended: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_lines, "LONGEST_LINE", 1_000_000)
    good = {"kind": "thought", "time": BEGUN, "text": "good"}
    bad = [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"1" * 5000,
    ]
    long = [json.dumps(good).encode() + b" " * length for length in (999_999, 1_000_000, 2_000_001)]
    _write(trajectory_file(ended.paths.logs), good, *bad, *long, good)
    timeline = read_timeline(ended)
    assert [event.text for event in timeline.events if event.kind == "thought"] == ["good", "good"]
    assert timeline.left_out == ["trajectory.jsonl: 10 lines that are not JSON objects, too long or too deeply nested"]


def test_a_file_is_read_within_bounds(ended: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"kind": "thought", "time": BEGUN, "text": "good"}
    size = len(json.dumps(line)) + 1
    _write(trajectory_file(ended.paths.logs), *[line] * 1000)
    monkeypatch.setattr(timeline, "MOST_EVENTS", 10)
    shown = read_timeline(ended)
    assert len(shown.events) == 12
    assert shown.left_out == ["trajectory.jsonl: all lines after the first 10"]
    monkeypatch.setattr(timeline, "MOST_EVENTS", 10_000)
    monkeypatch.setattr(untrusted_lines, "MOST_BYTES", 10 * size)
    shown = read_timeline(ended)
    assert len(shown.events) == 12
    assert shown.left_out == [f"trajectory.jsonl: its last {990 * size} bytes"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_anything_but_a_file_is_not_read(ended: Run, kind: str, tmp_path: Path) -> None:
    where = trajectory_file(ended.paths.logs)
    if kind == "link":
        _write(tmp_path / "secret", *STEPS)
        where.symlink_to(tmp_path / "secret")
    else:
        os.mkfifo(where) if kind == "pipe" else where.mkdir()
    timeline = read_timeline(ended)
    assert len(timeline.events) == 2
    assert timeline.left_out[0].startswith("trajectory.jsonl, which is a ")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(
    ["kind", "time", "step", "text", "name", "exit_code", "seconds", "model", "input_tokens", "output_tokens", "cost"]
    + ["cached_tokens", "reasoning_tokens", "metric", "value", "higher_is_better", "path", "reason", "answer", "tokens"]
)
known_kinds = st.sampled_from(["start", "thought", "action", "output", "call", "validation", "submission", "end"])
lines = st.dictionaries(names, values, max_size=8).flatmap(
    lambda line: st.one_of(st.just(line), known_kinds.map(lambda kind: {**line, "kind": kind}))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    told=st.lists(lines | st.binary(max_size=40), max_size=6),
    called=st.lists(lines | st.binary(max_size=40), max_size=3),
)
@example(told=[{"kind": "output", "seconds": 10**400, "exit_code": 10**400}], called=[{"tokens": {"input": 10**400}}])
def test_any_lines_make_a_story(ended: Run, told: list[Any], called: list[Any]) -> None:
    _write(trajectory_file(ended.paths.logs), *told)
    _write(model_calls(ended.paths.logs), *called)
    made = read_timeline(ended)
    assert [event.time for event in made.events] == sorted(event.time for event in made.events)
    assert all(BEGUN <= event.time <= BEGUN + 100 for event in made.events)
    text = _shown(made)
    text.encode()
    assert not [c for c in text if c not in "\n\t" and unicodedata.category(c) == "Cc"]
    json.dumps(made.to_dict(), allow_nan=False)


def test_the_page_describes_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/trajectories.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in re.findall(r"^\| `.*", page, re.MULTILINE)]
    described = {row[1].strip(" `"): tuple(re.findall(r"`(\w+)`", row[2])) for row in rows}
    for kind, known in timeline.KINDS.items():
        assert set(described[kind]) - {"step", "text"} == set(known.keys), kind
    assert [row[1].strip(" `") for row in rows][-8:] == [item.name for item in fields(timeline.TimelineEvent)]


def test_a_real_run_has_a_story(run: Callable[..., Group], mlebench: Mlebench) -> None:
    line = json.dumps({"kind": "thought", "time": time.time(), "step": 1, "text": "I copy the sample."})
    program = (
        f"cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv; echo '{line}' > $LOGS_DIR/trajectory.jsonl"
    )
    (one,) = run(program).runs()
    text = mlebench("runs", "show", str(one.paths.root), "--story").stdout
    assert "I copy the sample." in text
    assert "submission of " in text
    assert f"the run ends: finished, score {report_of(one).score}" in text
    events = json.loads(mlebench("runs", "show", str(one.paths.root), "--story", "--json").stdout)["events"]
    assert {"time", "kind", "source", "title", "step", "text", "cut", "facts"} == set(events[0])


def test_a_run_in_progress_has_a_story_so_far(start: Start, titanic: Competition, tmp_path: Path) -> None:
    line = json.dumps({"kind": "thought", "time": time.time(), "step": 1, "text": "I wait."})
    program = f"{SUBMIT}; echo '{line}' > $LOGS_DIR/trajectory.jsonl; sleep 300"
    named = ["--agent-command", program, "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path)]
    runner = start("run", *named)
    wanted = {"thought", f"submission of {titanic.sample_submission.stat().st_size} bytes"}

    def titles() -> set[str]:
        groups = [Group.read(record.parent) for record in tmp_path.glob("*/group.json")]
        return {event.title for group in groups for run in group.runs() for event in read_timeline(run).events}

    wait_until(lambda: wanted <= titles(), "the story has a thought and a submission", process=runner, details=titles)
    assert not any("the run ends" in title for title in titles())
