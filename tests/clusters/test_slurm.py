"""What Slurm is asked to do, against programs that pretend to be Slurm. `test_slurm_real.py` asks Slurm itself."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.groups import plan_group
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.sandboxes import breakable_bwrap, require
from support.waiting import wait_until

from mlebench.records.group import ExecutorConfig
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.executors import SchedulerError
from mlebench.run.slurm import Slurm, _time_limit

FAKE = Path(__file__).parents[1] / "support" / "fake_slurm.py"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a fake Slurm that does what it is told."""
    folder, programs = tmp_path / "slurm", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (folder / "mode").write_text("run")
    for name in ("sbatch", "squeue", "scancel", "sinfo", "scontrol"):
        (programs / name).symlink_to(FAKE)
    monkeypatch.setenv("PATH", f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    return folder


def calls(slurm: Path) -> list[list[str]]:
    paths = sorted(slurm.glob("*.call"), key=lambda path: int(path.stem))
    return [json.loads(path.read_text()) for path in paths]


def options_for(titanic: Competition, tmp_path: Path, seeds: int, program: str = SUBMIT) -> list[str]:
    named = ["--agent-command", program, "-c", titanic.id, "--runs-dir", str(tmp_path / "runs"), "--sandbox", "process"]
    limits = ["--time-limit", "60", "--cpus", "2", "--memory", "1g", "--seeds", str(seeds)]
    return [*named, *limits, "--executor", "slurm"]


def only_group(tmp_path: Path) -> Group:
    (folder,) = (tmp_path / "runs").iterdir()
    return Group.read(folder)


@pytest.fixture
def planned(titanic: Competition, tmp_path: Path) -> Callable[..., Group]:
    """A group with one planned run."""

    def call(gpus: int = 0) -> Group:
        limits = {"time_limit": 60, "memory": 10**9, "cpus": 1.5, "gpus": str(gpus)}
        return plan_group(titanic, tmp_path / "runs", agent_command="true", executor="slurm", **limits)

    return call


def test_every_run_is_done_and_graded(mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path) -> None:
    mlebench("run", *options_for(titanic, tmp_path, 3), "--workers", "2", "--slurm-option", "partition=gpu")
    group = only_group(tmp_path)
    assert [run.record.ended for run in group.runs()] == ["finished"] * 3
    assert (group.paths.root / str(group.record.report)).is_file()
    (call,) = calls(slurm)
    # 60 s and half an hour of grace; the agent's memory and 2 GiB for ours.
    wanted = ["--array=1-3%2", "--time=31", "--mem=3072M", "--cpus-per-task=2", "--partition=gpu"]
    assert set(wanted) <= set(call)
    assert not any(word.startswith("--gres") for word in call)
    assert group.record.executor == ExecutorConfig(name="slurm", options={"partition": "gpu"})


def test_ctrl_c_detaches_and_resume_submits_only_what_is_left(
    start: Start, mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("hold")
    _detach(start("run", *options_for(titanic, tmp_path, 3), "--workers", "3"), slurm, 1)
    group = only_group(tmp_path)
    assert {run.record.state for run in group.runs()} == {"planned"}
    assert len(list(slurm.glob("*.job"))) == 1, "Slurm still has them"

    job = slurm / "1.job"
    job.write_text(job.read_text().removesuffix("\n3"))  # it has forgotten one
    _detach(start("run", "--resume", str(group.paths.root)), slurm, 2)
    assert ["--array=1-1%1" in call for call in calls(slurm)] == [False, True]

    said = mlebench("runs", "cancel", str(group.paths.root)).stderr
    assert "Cancelled 3 runs at slurm" in said
    assert not list(slurm.glob("*.job"))
    (slurm / "mode").write_text("run")
    mlebench("run", "--resume", str(group.paths.root))
    assert [run.record.ended for run in only_group(tmp_path).runs()] == ["finished"] * 3
    assert all(len(run.record.attempts) == 1 for run in group.runs())


def _detach(runner: "subprocess.Popen[str]", slurm: Path, submitted: int) -> None:
    wait_until(lambda: len(calls(slurm)) >= submitted, f"{submitted} submissions were made", process=runner)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130


def test_lost_runs_are_resubmitted_but_not_forever(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("lose")
    said = mlebench("run", *options_for(titanic, tmp_path, 2), code=1).stderr
    assert "2 runs have not ended. `mlebench run --resume" in said
    assert len(calls(slurm)) == 3
    assert {run.record.state for run in only_group(tmp_path).runs()} == {"planned"}


def test_a_controller_that_is_away_for_a_while_loses_nothing(
    start: Start, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    runner = start("run", *options_for(titanic, tmp_path, 2, f"{SUBMIT}; sleep 2"))
    wait_until(lambda: calls(slurm), "the runs were submitted", process=runner)
    (slurm / "down").touch()
    refused = slurm / "refused"
    is_refused_twice = lambda: refused.is_file() and refused.read_text().count("squeue") >= 2  # noqa: E731
    wait_until(is_refused_twice, "squeue was refused twice", process=runner)
    assert runner.poll() is None
    (slurm / "down").unlink()
    assert runner.wait(120) == 0
    assert [run.record.ended for run in only_group(tmp_path).runs()] == ["finished"] * 2
    assert len(calls(slurm)) == 1


def test_a_job_that_only_seems_to_run_is_cancelled_and_resubmitted(
    start: Start, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    """As when slurmstepd is killed: Slurm shows the job as running until it notices, which takes minutes."""
    (slurm / "mode").write_text("hold")
    (slurm / "1.dead").touch()
    runner = start("run", *options_for(titanic, tmp_path, 1))
    for count in (1, 2):
        wait_until(lambda count=count: len(calls(slurm)) >= count, f"submission {count} was made", process=runner)
        (slurm / "mode").write_text("run")
    assert runner.wait(120) == 0
    (run,) = only_group(tmp_path).runs()
    assert run.record.ended == "finished"


def test_a_resume_that_only_watches_survives_a_controller_that_is_away(
    start: Start, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("hold")
    _detach(start("run", *options_for(titanic, tmp_path, 1)), slurm, 1)
    (slurm / "asked").unlink()
    runner = start("run", "--resume", str(only_group(tmp_path).paths.root))
    wait_until(lambda: "squeue" in _lines(slurm / "asked"), "it has seen the job", process=runner)
    (slurm / "down").touch()
    wait_until(lambda: _lines(slurm / "refused").count("squeue") >= 2, "squeue was refused twice", process=runner)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    assert len(calls(slurm)) == 1


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


def test_a_broken_node_is_excluded_and_its_runs_go_elsewhere(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    (slurm / "nodes").write_text("n1 n2")
    with breakable_bwrap("n1") as programs:
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        options = [*options_for(titanic, tmp_path, 4), "--workers", "2", "--sandbox", "bubblewrap"]
        said = mlebench("run", *options).stderr
    runs = list(only_group(tmp_path).runs())
    assert [run.record.ended for run in runs] == ["finished"] * 4
    assert {run.record.attempts[-1].node for run in runs} == {"n2"}
    assert 2 <= sum(len(run.record.attempts) - 1 for run in runs) <= 4
    assert "--exclude=n1" in calls(slurm)[-1]
    assert "n1 takes no more runs of this group" in said


def test_if_every_node_has_stopped_the_command_ends_and_says_what_to_mend(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "bare").write_text("n1")
    said = mlebench("run", *options_for(titanic, tmp_path, 3), code=1).stderr
    assert "3 runs have not ended" in said
    assert "n1 takes no more runs of this group" in said
    assert "has no /nowhere/python" in said
    assert "Mend that host" in said
    assert {run.record.state for run in only_group(tmp_path).runs()} == {"planned"}


def test_cancel_while_the_submitting_command_is_attached(
    start: Start, mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("hold")
    runner = start("run", *options_for(titanic, tmp_path, 3), stderr=subprocess.PIPE)
    wait_until(lambda: calls(slurm), "the runs were submitted", process=runner)
    group = only_group(tmp_path)
    assert "Cancelled 3 runs at slurm" in mlebench("runs", "cancel", str(group.paths.root)).stderr
    _, errors = runner.communicate(timeout=120)
    assert runner.returncode == 130
    assert "Somebody has cancelled this group" in errors
    assert len(calls(slurm)) == 1, "they came back"
    assert not list(slurm.glob("*.job"))


def test_runs_that_are_submitted_again_do_not_exceed_the_workers(planned: Callable[..., Group], slurm: Path) -> None:
    group = planned()
    (slurm / "mode").write_text("hold")
    folders = [group.paths.root / f"run-{number}" for number in range(5)]
    scheduler = Slurm(group, 2, {})
    assert scheduler.submit(folders[:4]) == folders[:4]
    assert scheduler.submit(folders[4:]) == [], "the array may use both workers"
    job = slurm / "1.job"
    job.write_text("\n".join(job.read_text().split("\n")[:5]))  # one task is left
    assert scheduler.submit(folders[4:]) == folders[4:]
    arrays = [word for call in calls(slurm) for word in call if word.startswith("--array=")]
    assert arrays == ["--array=1-4%2", "--array=1-1%1"]


def test_runs_that_are_too_large_for_every_node_are_not_even_planned(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    said = mlebench("run", *options_for(titanic, tmp_path, 1), "--cpus", "36", code=1).stderr
    assert "Requested node configuration is not available" in said
    assert "needs 36 CPUs and 3072 MB; the largest nodes have 4 CPUs and 16000 MB" in said
    assert not (tmp_path / "runs").exists()


def test_the_reason_why_nothing_starts_is_slurms(
    start: Start, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("hold")
    (slurm / "reason").write_text("ReqNodeNotAvail, UnavailableNodes:n1")
    output = tmp_path / "output"
    with output.open("w") as file:
        runner = start("run", *options_for(titanic, tmp_path, 1), stderr=file)
    message = "slurm has not started any run yet: ReqNodeNotAvail, UnavailableNodes:n1"
    wait_until(lambda: message in output.read_text(), "the reason is shown", process=runner)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1", 60), ("1:30", 90), ("2:00:00", 7200), ("1-0", 86400), ("1-02:03", 93780), ("0", None), ("UNLIMITED", None)],
)
def test_time_limits_are_read_as_sbatch_reads_them(text: str, seconds: float | None) -> None:
    assert _time_limit(text) == seconds


def test_a_time_limit_of_slurm_below_the_runs_own_is_warned_of(planned: Callable[..., Group], slurm: Path) -> None:
    group = planned()  # of 60 s
    assert Slurm(group, 1, {"time": "1"}).warning() is None
    assert "time=0:30" in str(Slurm(group, 1, {"time": "0:30"}).warning())


def test_resume_keeps_the_recorded_options_and_takes_new_ones(
    start: Start, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "mode").write_text("hold")
    options = ["--slurm-option", "partition=gpu", "--slurm-option", "account=lab"]
    _detach(start("run", *options_for(titanic, tmp_path, 1), *options), slurm, 1)
    for number, more in enumerate((["--slurm-option", "account=other"], ["--executor", "slurm"]), start=2):
        (slurm / f"{number - 1}.job").unlink()
        _detach(start("run", "--resume", str(only_group(tmp_path).paths.root), *more), slurm, number)
    assert {"--partition=gpu", "--account=other"} <= set(calls(slurm)[1])
    assert {"--partition=gpu", "--account=lab"} <= set(calls(slurm)[2])


@pytest.mark.parametrize(
    ("complaint", "shown"),
    [
        (
            "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information",
            "unrecognized option '--foo'",
        ),
        (
            "sbatch: error: lua: name a project with --account\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            "lua: name a project with --account; Batch job submission failed: Unspecified error",
        ),
    ],
)
def test_the_useful_line_of_an_error_is_shown(
    planned: Callable[..., Group], slurm: Path, complaint: str, shown: str
) -> None:
    group = planned()
    (slurm / "complaint").write_text(complaint)
    with pytest.raises(SchedulerError) as raised:
        Slurm(group, 1, {}).submit([Path("run-1")])
    assert str(raised.value) == f"sbatch failed: {shown}"


def test_without_slurm_the_error_is_one_line(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    (slurm / "down").touch()
    said = mlebench("run", *options_for(titanic, tmp_path, 1), code=1).stderr.splitlines()
    assert "Error: sbatch failed: slurm_load_jobs error" in said[-1]
    assert not (tmp_path / "runs").exists(), "nothing was planned"


def test_more_runs_than_an_array_may_have(
    planned: Callable[..., Group], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    monkeypatch.setenv("FAKE_SLURM_ARRAY", "5")
    (slurm / "mode").write_text("hold")
    folders = [group.paths.root / f"run-{number}" for number in range(18)]
    scheduler = Slurm(group, 3, {})
    scheduler.submit(folders)
    made = calls(slurm)
    arrays = [next(word for word in call if word.startswith("--array=")) for call in made]
    assert arrays == ["--array=1-4%1"] * 4 + ["--array=1-2%1"]
    after = [[word for word in call if word.startswith("--dependency=")] for call in made]
    assert after == [[], [], [], ["--dependency=afterany:1"], ["--dependency=afterany:2"]]
    assert list(scheduler.jobs()) == folders
    assert scheduler.cancel() == 18


def test_workers_are_shared_out_over_arrays(
    planned: Callable[..., Group], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    monkeypatch.setenv("FAKE_SLURM_ARRAY", "5")
    (slurm / "mode").write_text("hold")
    Slurm(group, 8, {}).submit([Path(f"run-{number}") for number in range(12)])
    arrays = [word for call in calls(slurm) for word in call if word.startswith("--array=")]
    assert arrays == ["--array=1-4%3", "--array=1-4%3", "--array=1-4%2"]


@pytest.mark.parametrize(
    ("options", "asked", "not_asked"),
    [
        ({}, "--gres=gpu:2", "--gpus"),
        ({"gpus-per-task": "a100:2"}, "--gpus-per-task=a100:2", "--gres"),
        ({"gres": "gpu:h100:2"}, "--gres=gpu:h100:2", "--gres=gpu:2"),
        ({"exclusive": ""}, "--exclusive", "--exclusive="),
        ({"time": "7-0"}, "--time=7-0", "--time=31"),
    ],
)
def test_a_sites_option_takes_precedence_over_ours(
    planned: Callable[..., Group], slurm: Path, options: dict[str, str], asked: str, not_asked: str
) -> None:
    (slurm / "mode").write_text("hold")
    Slurm(planned(gpus=2), 1, options).submit([Path("run-1")])
    (call,) = calls(slurm)
    assert asked in call
    assert not any(word.startswith(not_asked) for word in call)


def test_options_come_from_the_settings_too(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("slurm: {partition: cpu, account: lab, exclusive: true}\n")
    more = ["--slurm-option", "partition=gpu", "--gpus", "1"]
    mlebench("run", *options_for(titanic, tmp_path, 1), *more, env={"MLEBENCH_CONFIG": str(settings)})
    (call,) = calls(slurm)
    assert {"--partition=gpu", "--account=lab", "--exclusive", "--gres=gpu:1"} <= set(call)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--executor", "slurm", "--slurm-option", "array=1-9"], "array"),
        (["--executor", "slurm", "--slurm-option", "what is this"], "NAME=VALUE"),
        (["--executor", "slurm", "--gpus", "0,1"], "the number of GPUs"),
        (["--slurm-option", "partition=gpu"], "--executor slurm"),
        (["--executor", "slurm", "--ray-address", "auto"], "--executor ray"),
    ],
)
def test_what_makes_no_sense_is_refused(
    mlebench: Mlebench, slurm: Path, titanic: Competition, tmp_path: Path, words: list[str], said: str
) -> None:
    done = mlebench(
        "run", "--agent", "dummy", "-c", titanic.id, "--runs-dir", str(tmp_path / "runs"), *words, code=None
    )
    assert done.returncode != 0
    assert said in done.stderr.splitlines()[-1]
    assert not calls(slurm)


def test_a_node_that_lacks_python_says_so_in_the_runs_log(
    planned: Callable[..., Group], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    (folder,) = [run.paths.root for run in group.runs()]
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    Slurm(group, 1, {}).submit([folder])
    log = folder / "runner.log"
    message = "has no /nowhere/python"
    wait_until(lambda: log.is_file() and message in log.read_text(), f"the log of the run says: {message}")


def test_our_own_option_names_are_refused_in_settings_too(planned: Callable[..., Group], slurm: Path) -> None:
    with pytest.raises(SchedulerError, match="job-name"):
        Slurm(planned(), 1, {"job-name": "mine"})
