"""A hostile agent learns nothing, harms nothing outside its folders, and is graded as what it handed in."""

import os
import stat
from pathlib import Path

import pytest
from sandboxes import ISOLATING, make_task, require, run_task
from traps import Trap, listening

from mlebench.registry import Competition
from mlebench.sandbox.base import Bind

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOSYS", "EXDEV", "ESRCH", "EINVAL", "ENOSPC", "ENXIO"}
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts"}


@pytest.fixture
def trap(tmp_path: Path, titanic: Competition) -> Trap:
    return Trap.set(tmp_path, titanic)


@pytest.mark.parametrize("sandbox", ISOLATING)
def test_an_agent_that_searches_finds_nothing_and_changes_nothing(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before = trap.state()
    with listening(trap) as servers:
        caught = trap.run("search", sandbox=sandbox, **servers)
    assert caught.run.record.ended == "finished", caught.run.paths.log.read_text()
    findings = caught.findings
    assert findings["found"] == []
    assert findings["files"] > 10  # it did look
    assert [name for name in findings["names"] if not name.startswith("/run/mlebench")] == []
    _assert_no_way_out(findings)
    assert trap.state() == before
    assert caught.leftovers() == []


def _assert_no_way_out(findings: dict) -> None:
    network = findings["network"]
    assert network.pop("unix") == "/run/mlebench/validator.sock"
    assert "done" not in network.values(), network
    places = findings["places"]
    assert places.pop("written") == []
    assert {Path(name).name for name in places.pop("devices") if not name.startswith("/dev/pts/")} <= HARMLESS
    assert "done" not in places.values(), places
    powers = findings["powers"]
    assert powers.pop("uid") != 0
    assert powers.pop("capabilities") == [0]
    assert powers.pop("no new privileges") == "1"
    assert powers.pop("key") == ""
    assert powers.pop("session")
    assert powers.pop("processes") < 10
    assert set(powers.values()) <= REFUSED, powers


@pytest.mark.parametrize("sandbox", ISOLATING)
def test_what_is_hidden_stays_hidden_below_what_is_shown(tmp_path: Path, sandbox: str) -> None:
    """As with a Python installation that holds the benchmark, its data and runs, and that an agent's venv was made from."""
    require(sandbox)
    prefix = tmp_path / "prefix"
    for name in ("lib/package/grade.py", "share/data/id/prepared/private/test.csv", "lib/agents/venv/tool.py", "bin/mlebench"):
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(f"content of {name}")
    (tmp_path / "alias").symlink_to(prefix / "share" / "data")
    shown = (Bind(prefix, str(prefix)), Bind(prefix / "lib" / "agents" / "venv", str(prefix / "lib" / "agents" / "venv")))
    hidden = (prefix / "lib" / "package", tmp_path / "alias", prefix / "lib" / "agents", prefix / "bin" / "mlebench")
    task = make_task(tmp_path, f"cd {prefix}; grep -r content .; touch lib/package/x; true", binds=shown, hidden=hidden)
    outcome, log = run_task(sandbox, task)
    assert outcome.ended == "finished", outcome
    assert [line for line in log.splitlines() if "content" in line] == [
        "./lib/agents/venv/tool.py:content of lib/agents/venv/tool.py"
    ]
    assert "touch: " in log


def test_the_system_is_shown_without_the_benchmark_when_that_is_installed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/usr holds programs that a sandbox shows; here, also what it must not."""
    require("bubblewrap")
    monkeypatch.setattr("mlebench.paths.module_dir", lambda: Path("/usr/share"))
    outcome, log = run_task("bubblewrap", make_task(tmp_path, "ls /usr/share; [ -e /usr/bin/env ] && echo the rest"))
    assert (outcome.ended, log) == ("finished", "the rest\n")
    # The validator's sandbox shows it by name.
    own = make_task(tmp_path, "ls /usr/share | wc -l", binds=(Bind(Path("/usr/share"), "/usr/share"),))
    assert int(run_task("bubblewrap", own)[1]) > 3


# What is handed in: whether it counts as a submission, and what grading says.
HANDED_IN = {
    "link": ("none", "missing"),
    "relative link": ("none", "missing"),
    "link to data": ("none", "missing"),
    "pipe": ("none", "missing"),
    "socket": ("none", "missing"),
    "folder": ("none", "missing"),
    "sparse": ("none", "missing"),
    "folder is a link": ("none", "missing"),
    "folder is a file": ("none", "missing"),
    "closed": ("present", "graded"),
    "deep": ("present", "graded"),
    "changing": ("present", None),
    "exit code": ("present", "graded"),
}
ENDED = {"exit code": "agent_error", "deep": "over_disk"}
PLANTED = {"absolute", "relative", "folder", "root", "shadow", "itself", "process", "pipe", "socket", "sparse"}


@pytest.mark.parametrize("sandbox", ISOLATING)
def test_what_is_planted_is_not_followed_and_grading_sees_what_was_handed_in(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before = trap.state()
    kinds = list(HANDED_IN)
    options = ("--seeds", str(len(kinds)), "--workers", "3")
    caught = trap.run("plant", *options, sandbox=sandbox, kinds=kinds, pause=1.5)
    runs = sorted(caught.group.runs(), key=lambda run: run.record.seed)
    for kind, run in zip(kinds, runs, strict=True):
        record, log = run.record, run.paths.log.read_text()
        submission, status = HANDED_IN[kind]
        assert record.ended == ENDED.get(kind, "finished"), (kind, record.detail, log)
        assert len(record.attempts) == 1, kind
        assert record.report is not None
        assert (record.submission, record.report["status"]) == (submission, status or record.report["status"]), kind
        assert PLANTED <= {item["name"] for item in record.conditions["collected"]["left_out"]}, kind
        assert (run.paths.logs / "closed" / "inside").read_text() == "kept"
    _assert_collected_is_ours(caught.group.paths.root)
    assert trap.state() == before
    assert caught.leftovers() == []


def _assert_collected_is_ours(root: Path) -> None:
    secrets = 0
    for where, folders, names in os.walk(root):
        for path in (Path(where, name) for name in [*folders, *names]):
            status = path.lstat()
            assert status.st_uid == os.geteuid(), path
            assert not status.st_mode & 0o6000, path
            assert stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode), path
            if path.is_file() and status.st_size < 1 << 20:
                secrets += b"canary-" in path.read_bytes()
    assert secrets == 0
