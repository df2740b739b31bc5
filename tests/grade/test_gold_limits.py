"""Grading takes at most a multiple of what gold takes; beyond that a submission is invalid, unless we are at fault."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.competition_folders import add_competition

from mlebench.cli.grade import command as grade
from mlebench.cli.grade_sample import command as grade_sample
from mlebench.core.errors import NotPreparedError, UnreadableSubmissionError
from mlebench.data.gold import keep_cost, recorded_cost
from mlebench.grade import GradingLimits, grade_csv, limits
from mlebench.grade.in_process import GradingJob, OneCompetition, Ungraded
from mlebench.grade.limits import Allowance
from mlebench.grade.submission import grade_isolated
from mlebench.records.data import GoldCost
from mlebench.registry import Competition, Registry
from mlebench.scoring import CompetitionReport

# Gold has the columns PassengerId and Transported; other submissions say by their only column what they do.
GREEDY = """
import mmap, os, resource, signal
from pathlib import Path

def leave(room):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

def grade(submission, answers):
    word = submission.columns[0]
    if word == "PassengerId":
        with open(Path(__file__).with_name("gold graded"), "a") as file: file.write("x")
        word = Path(__file__).with_name("gold").read_text()
    match word:
        case "burn":
            while True: pass
        case "grow":
            held = []
            while True: held.append(bytearray(os.urandom(1024)) * 8192)
        case "ask": bytearray(1 << 60)
        case "poor":
            leave(1 << 30)
            bytearray(1 << 32)
        case "cramped":
            reserved = mmap.mmap(-1, 2 << 30)
            leave(1 << 26)
            bytearray(1 << 28)
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "fail": raise RuntimeError("on purpose")
        case "cpu": return resource.getrlimit(resource.RLIMIT_CPU)[0]
    return 0.5
"""


class Greedy:
    """A competition whose grader does what a submission says."""

    def __init__(self, folder: Path, competition: Competition):
        self.folder = folder
        self.competition = competition
        self.code = competition.folder

    def grade(self, path: Path, own: GradingLimits = GradingLimits()) -> CompetitionReport:  # noqa: B008
        report = grade_isolated(GradingJob(OneCompetition(self.competition), self.competition.id, str(path), own))
        assert isinstance(report, CompetitionReport)
        return report

    def gold(self, word: str) -> None:
        (self.code / "gold").write_text(word)

    def gold_graded(self) -> int:
        """How often gold was graded."""
        file = self.code / "gold graded"
        return file.stat().st_size if file.exists() else 0

    def submission(self, word: str, size: int = 0) -> Path:
        path = self.folder / f"{word}.csv"
        path.write_text(f"{word}\n" + "1\n" * (size // 2))
        return path


@pytest.fixture
def greedy(titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Greedy:
    add_competition(tmp_path / "own", "greedy", GREEDY, titanic, tmp_path / "data")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    monkeypatch.setattr(limits, "LEAST_SECONDS", 1.0)
    monkeypatch.setattr(limits, "LEAST_MEMORY", 600_000_000)
    monkeypatch.setattr("mlebench.grade.submission._costs", {})
    made = Greedy(tmp_path, Registry(tmp_path / "data").get_competition("greedy"))
    made.gold("")
    _manifest(made, gold={"seconds": 0.01, "memory": 100_000_000, "size": 4000})
    return made


def _manifest(greedy: Greedy, **changes: Any) -> None:
    path = greedy.competition.paths.manifest
    path.chmod(0o644)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("word", "amount"),
    [("burn", "1 s of CPU time"), ("grow", "0.6 GB of memory"), ("ask", "0.6 GB of memory")],
)
def test_a_submission_that_takes_far_more_than_gold_is_invalid(greedy: Greedy, word: str, amount: str) -> None:
    report = greedy.grade(greedy.submission(word))
    assert (report.status, report.score) == ("invalid", None)
    assert report.submission_sha256 == hashlib.sha256(greedy.submission(word).read_bytes()).hexdigest()
    most = "the most for a submission of its size in this competition"
    assert report.reason == f"grading took more than {amount}, {most}"
    (line,) = (greedy.folder / "data" / "grades.jsonl").read_text().splitlines()
    assert json.loads(line)["status"] == "invalid"


def test_grade_and_grade_sample_keep_the_same_limits(
    greedy: Greedy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    grade_sample.main([str(greedy.submission("ask")), "greedy", *data], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["status"] == "invalid"
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"competition_id": "greedy", "submission_path": str(greedy.submission("ask"))}))
    batch = ["--submission", str(file), "--output-dir", str(tmp_path / "out"), *data]
    grade.main([*batch, "--time-limit", "1h", "--memory", "1t"], standalone_mode=False)
    (report,) = (tmp_path / "out").glob("*.json")
    assert [row["status"] for row in json.loads(report.read_text())["competition_reports"]] == ["invalid"]


@pytest.mark.parametrize("word", ["burn", "grow", "fail"])
def test_if_gold_takes_too_much_as_well_the_fault_is_ours(greedy: Greedy, word: str) -> None:
    greedy.gold(word)
    report = greedy.grade(greedy.submission("ask"))
    assert report.status == "grader_error"
    assert "grading the gold submission takes too much here as well" in (report.reason or "")


def test_a_host_out_of_memory_below_the_limit_is_no_fault_of_the_submission(
    greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = greedy.grade(greedy.submission("poor"), GradingLimits(memory=1 << 40))
    assert poor.status == "invalid", "more than the limit was asked for, and the host has that much"
    cramped = greedy.grade(greedy.submission("cramped"))
    assert cramped.status == "grader_error", "the address space is used up, and little of it is memory"
    monkeypatch.setattr(limits, "LEAST_MEMORY", 2_000_000_000)
    poor = greedy.grade(greedy.submission("poor"))
    assert (poor.status, poor.reason) == ("grader_error", "there was not enough memory on this machine to grade it")
    killed = greedy.grade(greedy.submission("kill"))
    assert (killed.status, "not enough memory" in (killed.reason or "")) == ("grader_error", True)


def test_without_a_gold_submission_that_can_be_graded_nobody_is_accused(
    greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TIMES_UNMEASURED", 1)
    _manifest(greedy, gold=None)
    greedy.gold("fail")
    report = greedy.grade(greedy.submission("ask"))
    assert (report.status, "cannot be graded for comparison" in (report.reason or "")) == ("grader_error", True)


def test_a_large_submission_may_take_more(greedy: Greedy) -> None:
    assert greedy.grade(greedy.submission("cpu")).score == 1
    _manifest(greedy, gold={"seconds": 2.0, "memory": 100_000_000, "size": 1000})
    os.utime(greedy.competition.answers)  # other data
    assert greedy.grade(greedy.submission("cpu")).score == 20
    assert greedy.grade(greedy.submission("cpu", 3000)).score == 61


def test_the_default_limits_leave_room_for_honest_submissions() -> None:
    small = GoldCost(seconds=0.1, memory=150_000_000, size=100_000)
    assert Allowance.for_size(50_000, small) == (60, 2_000_000_000)
    assert Allowance.for_size(1_000_000, small) == (60, 6_000_000_000)
    assert Allowance.for_size(100_000_000, small) == (1000, 8_000_000_000)
    assert Allowance.for_size(8 << 30, small) == (1800, 8_000_000_000), "padding helps so far and no further"
    icecube = GoldCost(seconds=40, memory=2_300_000_000, size=700_000_000)
    assert Allowance.for_size(600_000_000, icecube) == (400, 9_200_000_000)
    assert Allowance.for_size(7_000_000_000, icecube) == (1800, 9_200_000_000)
    assert Allowance.for_size(600_000_000, icecube, interval=True) == (920, 18_400_000_000)
    assert Allowance.for_size(10, None) == (600, 20_000_000_000)


def test_gold_is_measured_once_where_prepare_did_not_and_kept_in_the_cache(
    greedy: Greedy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy.competition.paths.manifest.unlink()  # as when the reference prepared it
    sample = greedy.submission("cpu")
    assert greedy.grade(sample).status == "graded"
    (kept,) = (tmp_path / "XDG_CACHE_HOME").rglob("gold/greedy/*.json")
    cost = recorded_cost(greedy.competition)
    assert cost
    assert cost == GoldCost(**json.loads(kept.read_text()))
    assert cost.size == greedy.competition.gold_submission.stat().st_size
    assert cost.memory > 10_000_000
    monkeypatch.setattr("mlebench.grade.submission._costs", {})  # another process
    assert greedy.grade(sample).status == "graded"
    assert greedy.gold_graded() == 1
    assert len((tmp_path / "data" / "grades.jsonl").read_text().splitlines()) == 2, "gold is nobody's submission"
    os.utime(greedy.competition.answers)
    assert greedy.grade(sample).status == "graded"
    assert greedy.gold_graded() == 2, "other data"


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"seconds": "x", "memory": 1, "size": 1}'])
def test_a_damaged_figure_in_the_cache_is_ignored(content: bytes, titanic: Competition, tmp_path: Path) -> None:
    shutil.copytree(titanic.paths.data_dir, tmp_path / "data")
    competition = Registry(tmp_path / "data").get_competition(titanic.id)
    competition.paths.manifest.unlink()
    keep_cost(competition, GoldCost(1, 2, 3))
    assert recorded_cost(competition) == GoldCost(1, 2, 3)
    (kept,) = (tmp_path / "XDG_CACHE_HOME").rglob("gold/*/*.json")
    kept.write_bytes(content)
    assert recorded_cost(competition) is None


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy.competition.paths.manifest.unlink()
    path = greedy.submission("cpu")
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # no folder can be made there
    assert greedy.grade(path).status == "graded"


def test_prepare_records_what_gold_takes(titanic: Competition) -> None:
    cost = recorded_cost(titanic)
    assert cost is not None
    assert cost.size == titanic.gold_submission.stat().st_size
    assert cost.seconds > 0
    assert cost.memory > 10_000_000
    manifest = json.loads(titanic.paths.manifest.read_text())
    assert manifest["gold"] == msgspec.to_builtins(cost)


def test_in_a_child_the_same_errors_are_raised(greedy: Greedy, monkeypatch: pytest.MonkeyPatch) -> None:
    path = greedy.submission("cpu")
    competition = greedy.competition
    with monkeypatch.context() as patch:
        patch.setattr(
            "mlebench.grade.submission.grade_isolated",
            lambda _: Ungraded("bad_entry", "cannot read it: the disk failed"),
        )
        with pytest.raises(UnreadableSubmissionError, match="the disk failed"):
            grade_csv(path, competition, limits=GradingLimits())
    with monkeypatch.context() as patch:
        patch.setattr("mlebench.grade.submission.call", _no_process)
        with pytest.raises(BlockingIOError):
            grade_csv(path, competition, limits=GradingLimits())
    shutil.rmtree(competition.private_dir)
    with pytest.raises(NotPreparedError, match="Private directory does not exist"):
        grade_csv(path, competition, limits=GradingLimits())


def _no_process(*_: object, **__: object) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_the_reference_s_call_stays_in_this_process(titanic: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_child(*_: object, **__: object) -> None:
        pytest.fail("a process was started")

    monkeypatch.setattr("mlebench.grade.submission.call", no_child)
    assert grade_csv(titanic.sample_submission, titanic).status == "graded"
    monkeypatch.setattr(titanic.grader, "_grade_fn", lambda *_: bytearray(1 << 60))
    report = grade_csv(titanic.sample_submission, titanic)
    assert (report.status, report.score) == ("grader_error", None)
