"""Files that were deleted count while something holds them. A disk that is full: who filled it?"""

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import ISOLATING, MB, SMALL, each, make_task, require, run_task, wait_for_end
from traps import run_as
from waiting import wait_until

from mlebench.errors import StorageError
from mlebench.files import require_free_space
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.session import Session

AMPLE = replace(SMALL, disk=1000 * MB)
USERS = [None, 65534] if os.geteuid() == 0 else [None]  # only root can become another user
# Each holds 80 MB of deleted files, as far as the disk has room.
PREPARATION = """
import array, ctypes, mmap, os, socket, time
def files():
    for number in range(8):
        file = open(f'/home/{number}', 'w+b', buffering=0)
        os.unlink(f'/home/{number}')
        try:
            for _ in range(10):
                file.write(bytes(1_000_000))
        except OSError:
            pass
        yield file
"""
HOLDERS = {
    "open": "held = list(files())",
    "mapped": "held = [mmap.mmap(file.fileno(), 0) for file in files() if os.fstat(file.fileno()).st_size]",
    "in a socket": """
ours, theirs = socket.socketpair()
for file in files():
    ours.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file.fileno()]))])
""",
    "by a process that is not dumpable": "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); held = list(files())",
}


def holder(kind: str) -> str:
    return f"python3 -c {shlex.quote(PREPARATION + HOLDERS[kind] + chr(10) + 'file = None; time.sleep(30)')}"


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 60 MB, where temporary folders are made, too."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=60m,mode=1777", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
            pytest.skip("only root can mount a disk")
        monkeypatch.setattr(tempfile, "tempdir", folder)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> None:
    with contextlib.suppress(OSError), (folder / "others").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


@pytest.mark.parametrize("sandbox", each(*ISOLATING))
@pytest.mark.parametrize("kind", ["open", "mapped"])
def test_deleted_files_that_are_open_or_mapped_count(tmp_path: Path, sandbox: str, kind: str) -> None:
    require(sandbox)
    outcome, log = run_task(sandbox, make_task(tmp_path, holder(kind)))
    assert outcome.ended == "over_disk", log


def test_deleted_files_that_an_ordinary_users_sandbox_has_mapped_count(tmp_path: Path) -> None:
    require("bubblewrap")
    outcome, log = run_as(USERS[-1], tmp_path, holder("mapped"))
    assert outcome == "over_disk", log


@pytest.mark.parametrize("kind", ["in a socket", "by a process that is not dumpable"])
@pytest.mark.parametrize("user", USERS)
def test_who_fills_a_disk_with_hidden_files_is_over_its_limit(small_disk: Path, kind: str, user: int | None) -> None:
    require("bubblewrap")
    outcome, log = run_as(user, small_disk, holder(kind))
    assert outcome == "over_disk", log


def test_who_fills_a_disk_that_is_smaller_than_its_limit_is_over_it(small_disk: Path) -> None:
    require("bubblewrap")
    outcome, _ = run_task("bubblewrap", make_task(small_disk, "cat /dev/zero > /home/x; sleep 30", AMPLE))
    assert (outcome.ended, outcome.used["disk_filled_by"]) == ("over_disk", "this run")
    assert outcome.detail is not None
    assert "this run filled it" in outcome.detail


def test_a_disk_that_others_fill_is_not_the_agents_fault(small_disk: Path) -> None:
    """It goes on, with what it has: it may need no more space."""
    require("bubblewrap")
    program = "head -c 9000000 /dev/zero > /home/x; while ! [ -e /home/go ]; do sleep 0.1; done"
    task = make_task(small_disk, program, AMPLE)
    session = Session(task, sandbox_named("bubblewrap").launch(task))
    wait_until((task.home / "x").exists, "the task has begun to write", 60)
    (task.home / "ready").touch()
    fill(small_disk)
    (task.home / "ready").rename(task.home / "go")
    outcome = wait_for_end(session)
    assert (outcome.ended, outcome.used["disk_filled_by"]) == ("finished", "others")


def test_a_full_disk_is_named_with_what_it_lacks(small_disk: Path, tmp_path: Path) -> None:
    require_free_space(small_disk, 50 * MB)  # of a small disk, a hundredth is enough besides
    with pytest.raises(StorageError, match=str(small_disk)):
        require_free_space(small_disk, 200 * MB)
    fill(small_disk)
    with pytest.raises(StorageError, match="0 MiB are free"):
        require_free_space(small_disk, None)
    require_free_space(tmp_path, 50 * MB)
