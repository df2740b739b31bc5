"""A hostile agent learns nothing, harms nothing outside its folders, and is graded as what it handed in."""

import os
import stat
from pathlib import Path

import pytest
from sandboxes import ISOLATING, leftovers, require
from traps import Trap, listening

from mlebench.registry import Competition

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOSYS", "EXDEV", "ESRCH", "EINVAL", "ENOSPC", "ENXIO"}
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts"}


@pytest.fixture
def trap(tmp_path: Path, titanic: Competition) -> Trap:
    return Trap.set(tmp_path, titanic)


@pytest.mark.parametrize("sandbox", ISOLATING)
def test_an_agent_that_searches_finds_nothing_and_changes_nothing(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before, left = trap.state(), set(leftovers())
    with listening(trap) as servers:
        caught = trap.run("search", sandbox=sandbox, **servers)
    assert caught.run.record.ended == "finished", caught.run.paths.log.read_text()
    findings = caught.findings
    assert findings["found"] == []
    assert findings["files"] > 10  # it did look
    assert [name for name in findings["names"] if not name.startswith("/run/mlebench")] == []
    _assert_no_way_out(findings)
    assert trap.state() == before
    assert set(leftovers()) == left


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
    before, left = trap.state(), set(leftovers())
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
    assert set(leftovers()) == left


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
