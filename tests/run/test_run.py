"""One run and a group of them, through the command line."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench, reports_of
from support.sandboxes import ALL, ISOLATING, leftovers, require, sandbox_params

from mlebench.integrity.failures.categories import classify
from mlebench.integrity.subjects import of_run
from mlebench.kit import public_sample_bytes
from mlebench.records.run_groups import Group, limits_of
from mlebench.registry import Competition, Registry
from mlebench.run.crash import last_words

Runner = Callable[..., Group]
TRACEBACK = 'Traceback (most recent call last):\n  File "main.py", line 1, in <module>\n'


@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_a_group_of_runs_is_graded_and_leaves_nothing_behind(run: Runner, titanic: Competition, sandbox: str) -> None:
    require(sandbox)
    group = run(
        f"{SUBMIT}; echo hello; echo log > $LOGS_DIR/agent.log; echo code > $CODE_DIR/train.py",
        "--seeds",
        "2",
        "--workers",
        "2",
        sandbox=sandbox,
    )
    runs = list(group.runs())
    assert [(one.record.seed, one.record.ended, one.record.submission) for one in runs] == [
        (0, "finished", "present"),
        (1, "finished", "present"),
    ]
    for one in runs:
        assert one.paths.root.name == f"{titanic.id}_{one.record.run_id}"
        assert one.paths.submission.read_bytes() == titanic.sample_submission.read_bytes()
        assert one.paths.log.read_text() == "hello\n"
        assert (one.paths.logs / "agent.log").read_text() == "log\n"
        assert (one.paths.code / "train.py").read_text() == "code\n"
        assert [path.read_bytes() for path in one.paths.snapshots.iterdir()] == [one.paths.submission.read_bytes()]
        assert one.record.report is not None
        assert one.record.report.status == "graded"
        assert one.record.report.run_id == one.record.run_id
        assert one.record.conditions.sealed == (sandbox in ISOLATING)
    assert runs[0].record.report is not None
    assert [report["score"] for report in reports_of(group)] == [runs[0].record.report.score] * 2
    assert group.record.report in {path.name for path in group.paths.root.iterdir()}
    assert not (group.paths.root / ".work").exists()
    tokens = [attempt.token for one in runs for attempt in one.record.attempts]
    assert not [left for left in leftovers() if any(token in left for token in tokens)]


@pytest.mark.parametrize("sandbox", sandbox_params("process", "bubblewrap"))
@pytest.mark.parametrize("id", ["statoil-iceberg-classifier-challenge", "invasive-species-monitoring"])
def test_an_agent_finds_a_packed_sample_unpacked(mlebench: Mlebench, tmp_path: Path, id: str, sandbox: str) -> None:
    require(sandbox)
    where = ["--twin", "--data-dir", str(tmp_path / "data"), "--runs-dir", str(tmp_path / "runs")]
    mlebench("run", "--agent", "dummy", "-c", id, "--sandbox", sandbox, *where)
    (folder,) = (tmp_path / "runs").iterdir()
    (run,) = Group.read(folder).runs()
    assert run.paths.submission.read_bytes() == public_sample_bytes(Registry(tmp_path / "data").get_competition(id))


def test_a_group_runs_and_is_repeated_under_profile_v2(mlebench: Mlebench, tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path / "data"), "--runs-dir", str(tmp_path / "runs"), "--sandbox", "process"]
    conditions = ["-c", "random-acts-of-pizza", "--twin", "--profile", "v2", "--time-limit", "5m"]
    mlebench("run", "--agent", "dummy", *conditions, *where)
    (first,) = (tmp_path / "runs").iterdir()
    mlebench("run", "--like", str(first), *where)
    groups = [Group.read(folder) for folder in (tmp_path / "runs").iterdir()]
    for (run,) in map(list, map(Group.runs, groups)):
        report = run.record.report
        assert report is not None
        assert (report.profile, report.release, report.status) == ("v2", "v2.0rc1", "graded")
        assert report.has_no_medals
    assert {path.name for path in (tmp_path / "data" / "random-acts-of-pizza").glob("prepared*")} == {"prepared-v2"}


def test_metadata_is_what_existing_tools_read(run: Runner, titanic: Competition) -> None:
    group = run(f"[ $SEED = 1 ] && exit 1; {SUBMIT}", "--seeds", "2")
    metadata = json.loads(group.paths.metadata.read_text())
    assert metadata["run_group"] == group.paths.root.name
    assert list(metadata["runs"].values()) == [{"success": True}, {"success": False}]
    for name in metadata["runs"]:
        assert name.split("_")[0] == titanic.id
        assert (group.paths.root / name / "run.json").is_file()


def test_a_crash_says_why_and_which_command_says_more(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> None:
    program = f"{SUBMIT}; python3 -c 'raise KeyError(\"Age\")'"
    named = ["--agent-command", program, "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    done = mlebench("run", *named)
    (folder,) = (tmp_path / "runs").iterdir()
    (one,) = Group.read(folder).runs()
    assert one.record.detail == "the agent ended with exit code 1: KeyError: 'Age'"
    line = f"{titanic.id} seed 0: {one.record.detail}"
    assert line in done.stderr
    assert f"`mlebench runs show {one.paths.root}`" in done.stderr
    shown = mlebench("runs", "show", str(one.paths.root)).stdout
    assert f"agent_error: {one.record.detail}" in shown
    assert "mlebench inspect failures" in shown
    found = classify(of_run(one, Group.read(folder)))
    assert (found.category, found.cause, found.also) == ("crashed", "missing_column", ("trivial", "below_median"))


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (f"{TRACEBACK}ValueError: no\n", "ValueError: no"),
        (f"{TRACEBACK}ValueError: no\nstopping\n\n", "ValueError: no"),
        (f"{TRACEBACK}ValueError: no\n{'going on ' * 3}\n" + "epoch\n" * 40 + "disk quota\r\n", "disk quota"),
        ("bash: lgbm: command not found\n", "bash: lgbm: command not found"),
        ("\x1b]0;owned\x07\x1b[31mred\u202e\n", "red\\u202e"),
        (f"{'x' * 100_000}\n{TRACEBACK}KeyError: '{'y' * 5000}'\n", f"KeyError: '{'y' * 289}"),
        ("", None),
    ],
)
def test_the_last_words_of_an_agent(tmp_path: Path, log: str, words: str | None) -> None:
    (tmp_path / "run.log").write_text(log, newline="")
    assert last_words(tmp_path / "run.log") == words


def test_a_log_that_is_no_file_has_no_last_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.log")
    assert last_words(tmp_path / "run.log") is None
    assert last_words(tmp_path / "other.log") is None


@pytest.mark.parametrize(
    ("program", "ended", "submission", "status"),
    [
        ("exit 3", "agent_error", "none", "missing"),
        (f"{SUBMIT}; exit 3", "agent_error", "present", "graded"),
        (f"{SUBMIT}; sleep 600", "timeout", "present", "graded"),
        ("true", "finished", "none", "missing"),
        ("echo wrong > $SUBMISSION_DIR/submission.csv", "finished", "present", "invalid"),
        ("mkfifo $SUBMISSION_DIR/submission.csv", "finished", "none", "missing"),
    ],
)
def test_every_end_is_recorded_and_what_was_submitted_is_graded(
    run: Runner, program: str, ended: str, submission: str, status: str
) -> None:
    group = run(program, "--time-limit", "10" if ended == "timeout" else "100")
    (one,) = group.runs()
    assert (one.record.state, one.record.ended, one.record.submission) == ("ended", ended, submission)
    assert one.record.report is not None
    assert one.record.report.status == status


def test_changed_submissions_are_kept_with_their_times(run: Runner) -> None:
    folder = "$HOME/../snapshots"  # in a plain process, the agent can see them
    write = f"echo $i > $SUBMISSION_DIR/submission.csv; until grep -qx $i {folder}/*; do sleep 0.1; done"
    group = run(f"for i in 1 2 3; do {write}; done")
    (one,) = group.runs()
    snapshots = sorted(one.paths.snapshots.iterdir())
    assert [path.read_text() for path in snapshots] == ["1\n", "2\n", "3\n"]
    times = [float(path.stem) for path in snapshots]
    assert times == sorted(times)


def test_failed_runs_can_be_repeated_and_that_is_shown(mlebench: Mlebench, run: Runner, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.write_text("")
    group = run(f"{SUBMIT}; [ ! -e {flag} ]")
    (before,) = group.runs()
    assert before.record.ended == "agent_error"
    mlebench("run", "--resume", str(group.paths.root))
    (same,) = group.runs()
    assert same.record == before.record  # what has ended is not repeated by itself
    flag.unlink()
    mlebench("run", "--resume", group.paths.root.name, "--runs-dir", str(tmp_path / "runs"), "--retry", "failed")
    (after,) = group.runs()
    assert (after.record.ended, after.record.rerolls, len(after.record.attempts)) == ("finished", 1, 2)
    assert (after.paths.attempt(1) / "submission" / "submission.csv").is_file()
    assert len(list(group.paths.root.glob("*_grading_report.json"))) == 1
    assert len(list(group.paths.superseded.iterdir())) >= 1


def test_infra_errors_are_retried_and_kept(mlebench: Mlebench, run: Runner, tmp_path: Path) -> None:
    """The knowledge folder disappears between planning and running: not the agent's fault."""
    group = run(SUBMIT)
    record = json.loads(group.paths.record.read_text())
    group.paths.record.write_text(json.dumps(record | {"data_dir": str(tmp_path / "gone")}))
    (one,) = group.runs()
    import shutil

    shutil.rmtree(one.paths.result)
    one.write(state="planned", ended=None)
    mlebench("run", "--resume", str(group.paths.root), code=1)
    (after,) = group.runs()
    assert after.record.state == "planned", "no agent has started"
    assert [attempt.ended for attempt in after.record.attempts[1:]] == ["infra_error"] * 2
    assert "not prepared" in str(after.record.attempts[-1].detail)


def test_an_attempts_supervisor_has_the_key_that_earlier_versions_wrote(run: Runner) -> None:
    (one,) = run(SUBMIT).runs()
    (attempt,) = json.loads(one.paths.record.read_text())["attempts"]
    supervisor = one.record.attempts[0].supervisor
    assert supervisor is not None
    assert attempt["keeper"]["pid"] == supervisor.pid


def test_exec_is_idempotent(mlebench: Mlebench, run: Runner) -> None:
    group = run(SUBMIT)
    (one,) = group.runs()
    before = one.paths.record.read_bytes()
    mlebench("run", "exec", str(one.paths.root))
    assert one.paths.record.read_bytes() == before
    mlebench("run", "exec", str(group.paths.root), code=2)


def test_a_run_in_progress_elsewhere_is_left_alone(mlebench: Mlebench, run: Runner) -> None:
    from mlebench.core.leases import acquire

    group = run(SUBMIT)
    (one,) = group.runs()
    import shutil

    shutil.rmtree(one.paths.result)
    one.write(state="planned", ended=None)
    lease = acquire(one.paths.leases)
    assert lease is not None
    mlebench("run", "exec", str(one.paths.root), code=75)
    lease.release()
    mlebench("run", "exec", str(one.paths.root), code=0)


@pytest.mark.parametrize("by_name", [False, True], ids=["run", "name"])
def test_like_repeats_a_group(mlebench: Mlebench, run: Runner, tmp_path: Path, by_name: bool) -> None:
    group = run(SUBMIT, "--memory", "3g", "--cpus", "1")
    (one,) = group.runs()
    runs = tmp_path / "runs"
    earlier = group.record.id if by_name else str(one.paths.root)
    mlebench("run", "--like", earlier, "--runs-dir", str(runs), "--seeds", "2")
    again = Group.read(max(set(runs.iterdir()) - {group.paths.root}))
    assert (limits_of(again).memory, limits_of(again).cpus) == (3 << 30, 1)
    assert [one.record.ended for one in again.runs()] == ["finished", "finished"]


def test_the_oracle_gets_gold_and_is_not_sealed(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> None:
    mlebench("run", "--agent", "oracle", "-c", titanic.id, "--runs-dir", str(tmp_path))
    (folder,) = tmp_path.glob("*run-group_oracle*")
    (one,) = Group.read(folder).runs()
    assert one.record.report is not None
    assert one.record.report.gold_medal
    assert not one.record.conditions.sealed


def test_runs_shows_what_happened(mlebench: Mlebench, run: Runner, tmp_path: Path) -> None:
    group = run(f"{SUBMIT}; printf 'a\\033[31mred\\033[0m\\n'")
    (one,) = group.runs()
    runs = ["runs", "--runs-dir", str(tmp_path / "runs")]
    assert group.record.id in mlebench(*runs).stdout
    assert json.loads(mlebench(*runs, "--json").stdout)[0]["ended"] == 1
    story = mlebench(*runs, "show", one.record.run_id).stdout
    assert "finished" in story
    assert "ared" in story
    assert "\033" not in story
    assert json.loads(mlebench(*runs, "show", str(one.paths.root), "--json").stdout)["run_id"] == one.record.run_id
    lines = mlebench(*runs, "submission", group.record.id, "--rel-log-path", "run.log").stdout.splitlines()
    (line,) = map(json.loads, lines)
    assert line["submission_path"] == str(one.paths.submission)
    assert line["logs_path"] == str(one.paths.log)
    assert line["code_path"] is None
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    mlebench("grade", "--submission", str(tmp_path / "s.jsonl"), "--output-dir", str(tmp_path / "reports"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--agent", "nobody"], "there is no agent"),
        (["--network", "model"], "name it with --model"),
        (["--gpus", "7"], "no GPU '7'"),
        (["--knowledge", "/nowhere"], "not a folder"),
        (["-c", "spooky-author-identification"], "mlebench prepare -c spooky-author-identification --twin"),
    ],
)
def test_impossible_runs_are_refused_before_anything_is_planned(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, options: list[str], words: str
) -> None:
    agent = [] if "--agent" in options else ["--agent-command", "true"]
    done = mlebench(
        "run", *agent, "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path), *options, code=1
    )
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_unknown_competitions_and_splits_are_wrong_usage(mlebench: Mlebench, tmp_path: Path) -> None:
    for options in (["-c", "no-such"], ["--split", "no-such"], []):
        mlebench("run", "--agent", "dummy", *options, "--runs-dir", str(tmp_path), code=2)


def test_an_agent_with_a_model_is_refused_without_a_network(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    folder = tmp_path / "clever"
    folder.mkdir()
    (folder / "start.sh").write_text("true\n")
    (folder / "config.yaml").write_text("clever:\n  start: clever/start.sh\n  env_vars: {KEY: '${{ secrets.KEY }}'}\n")
    done = mlebench("run", "--agent", str(folder), "-c", titanic.id, "--sandbox", "process", code=1)
    assert "--network" in done.stderr


def test_container_config_of_existing_setups(
    run: Runner, mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"mem_limit": "2g", "shm_size": "1G", "nano_cpus": 1000000000, "gpus": 0}')
    group = run(SUBMIT, "--container-config", str(config))
    limits = limits_of(group)
    assert (limits.memory, limits.shm, limits.cpus) == (2 << 30, 1 << 30, 1.0)
    config.write_text('{"volumes": {"/": "/host"}}')
    done = mlebench("run", "--agent", "dummy", "-c", titanic.id, "--container-config", str(config), code=1)
    assert "`volumes` has no meaning here" in done.stderr


def test_a_dockerfile_that_is_not_used_is_mentioned_before_the_run(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "start.sh").write_text(SUBMIT)
    (folder / "Dockerfile").write_text("FROM mlebench-env\n")
    (folder / "config.yaml").write_text("packed: {start: packed/start.sh, dockerfile: packed/Dockerfile}")
    named = ["-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    said = mlebench("run", "--agent", str(folder), *named).stderr
    assert said.index("The agent's Dockerfile is not used by process") < said.index(f"{titanic.id} seed 0: ")
    assert "Dockerfile" not in mlebench("run", "--agent", "dummy", *named).stderr
