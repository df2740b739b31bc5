"""Files that were deleted count while something holds them. Who filled a disk that is full, of bytes or of files?"""

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.sandboxes import ISOLATING, MB, SMALL, make_task, require, run_task, sandbox_params, wait_for_end
from support.traps import run_as
from support.waiting import wait_until

from mlebench.core import paths
from mlebench.core.errors import StorageError
from mlebench.core.files import require_free_space
from mlebench.core.os_errors import DiskSpace
from mlebench.sandbox import resource_usage, sandbox_named
from mlebench.sandbox.resource_usage import DiskWatch
from mlebench.sandbox.session import SupervisorClient
from mlebench.sandbox.shared_disk import DiskNotes

AMPLE = replace(SMALL, disk=1000 * MB, inodes=100_000)
MANY_FILES = "for i in {1..4000}; do : > file-$i; done 2>/dev/null"
USERS = [None, 65534] if os.geteuid() == 0 else [None]  # only root can become another user
# Each holds 80 MB of deleted files, as far as the disk has room.
PREPARATION = """
import array, ctypes, mmap, os, socket, threading, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def hold():
    held = list(files())
    time.sleep(30)
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
    "by a process that is not dumpable": "libc.prctl(4, 0, 0, 0, 0); held = list(files())",
    "by a thread with descriptors of its own": """
threading.Thread(target=lambda: (libc.unshare(0x400), hold())).start()
""",
    "by a thread that outlives the first": """
threading.Thread(target=hold).start()
libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
""",
    "by a page that is mapped": """
for file in files():
    libc.mmap(None, 4096, 1, 1, file.fileno(), 0)
    file.close()
""",
}
THREADS = [kind for kind in HOLDERS if "thread" in kind]


def holder(kind: str) -> str:
    return f"python3 -c {shlex.quote(PREPARATION + HOLDERS[kind] + chr(10) + 'file = None; time.sleep(30)')}"


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 60 MB and 3,000 files, where temporary folders are made, too."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=60m,nr_inodes=3000,mode=1777", "tmpfs", folder]
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


def fill_with_files(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for number in range(100_000):
            (folder / f"empty-{number}").touch()


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
@pytest.mark.parametrize("kind", ["open", "mapped"])
def test_deleted_files_that_are_open_or_mapped_count(tmp_path: Path, sandbox: str, kind: str) -> None:
    require(sandbox)
    outcome, log = run_task(sandbox, make_task(tmp_path, holder(kind)))
    assert outcome.ended == "over_disk", log


def test_deleted_files_that_an_ordinary_users_sandbox_has_mapped_count(tmp_path: Path) -> None:
    require("bubblewrap")
    outcome, log = run_as(USERS[-1], tmp_path, holder("mapped"))
    assert outcome == "over_disk", log


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", THREADS)
def test_deleted_files_that_only_a_thread_has_open_count(tmp_path: Path, kind: str, user: int | None) -> None:
    require("bubblewrap")
    outcome, log = run_as(user, tmp_path, holder(kind))
    assert outcome == "over_disk", log


def test_who_opens_too_many_files_to_be_measured_is_over_its_limit(
    fake_disk: "FakeDisk", monkeypatch: pytest.MonkeyPatch
) -> None:
    """While we look at millions of descriptors, the run would go on beyond all its limits, even that of time."""
    monkeypatch.setattr(resource_usage, "MOST_OPEN", 100)
    watch, pids = fake_disk.start("a"), lambda: [os.getpid()]
    with contextlib.ExitStack() as stack:
        for _ in range(101):
            stack.enter_context(Path(os.devnull).open("rb"))
        assert watch.fault(50 * MB, 1000, pids) == "more than 100 files were held open"
        fake_disk.free = DiskSpace(0, 900)
        shortage = watch.shortage(pids)
    assert shortage
    assert shortage.own.may_hide


@pytest.mark.parametrize("kind", ["in a socket", "by a process that is not dumpable", "by a page that is mapped"])
@pytest.mark.parametrize("user", USERS)
def test_who_fills_a_disk_with_hidden_files_is_over_its_limit(small_disk: Path, kind: str, user: int | None) -> None:
    require("bubblewrap")
    outcome, log = run_as(user, small_disk, holder(kind))
    assert outcome == "over_disk", log


def test_who_fills_a_disk_that_is_smaller_than_its_limit_is_over_it(small_disk: Path) -> None:
    require("bubblewrap")
    outcome, _ = run_task("bubblewrap", make_task(small_disk, "cat /dev/zero > /home/x; sleep 30", AMPLE))
    assert (outcome.ended, outcome.used.disk_filled_by) == ("over_disk", "this run")
    assert outcome.detail is not None
    assert "this run filled it" in outcome.detail


def test_who_fills_a_disk_with_empty_files_is_over_it(small_disk: Path) -> None:
    require("bubblewrap")
    outcome, _ = run_task("bubblewrap", make_task(small_disk, f"cd /home; {MANY_FILES}; sleep 30", AMPLE))
    assert (outcome.ended, outcome.used.disk_filled_by) == ("over_disk", "this run")
    assert outcome.detail is not None
    assert "inodes are free), and this run filled it" in outcome.detail


def start_and_wait(folder: Path, program: str) -> tuple[SupervisorClient, Path]:
    """A task that does something, waits for the returned file, and goes on with a command."""
    first, then = program.split(" THEN ")
    task = make_task(folder, f"{first}; echo > /home/ready; until [ -e /home/go ]; do sleep 0.1; done; {then}", AMPLE)
    (task.home / "ready").touch()  # even a full disk has room for it
    session = SupervisorClient(task, sandbox_named("bubblewrap").launch(task))
    return session, task.home / "go"


def let_go(*files: Path) -> None:
    """Move files into place, for which a full disk has no room."""
    for file in files:
        (file.parent / "ready").rename(file)


@pytest.mark.parametrize("what", ["bytes", "files"])
@pytest.mark.parametrize(("then", "end"), [("exit 0", "finished"), ("exit 3", "infra_error")])
def test_a_disk_that_others_fill_is_not_the_agents_fault(small_disk: Path, what: str, then: str, end: str) -> None:
    """It goes on, with what it has: it may need no more space. If it fails then, it may try again."""
    require("bubblewrap")
    session, go = start_and_wait(small_disk, f"head -c 9000000 /dev/zero > /home/x THEN {then}")
    wait_until((go.parent / "x").exists, "the task has begun to write", 60)
    (fill if what == "bytes" else fill_with_files)(small_disk)
    let_go(go)
    outcome = wait_for_end(session)
    assert (outcome.ended, outcome.used.disk_filled_by) == (end, "others")
    assert end == "finished" or "exit code 3 on a disk that others had filled" in (outcome.detail or "")


def test_of_runs_that_fill_a_disk_together_one_ends(small_disk: Path) -> None:
    """Not all of them, and not none: when its result is stored and its folder is gone, the others have room again."""
    require("bubblewrap")
    groups = [small_disk / group / ".work" for group in ("one", "one", "two")]
    program = f"head -c {18 * MB} /dev/zero > /home/x; until [ -e /home/more ]; do sleep 0.1; done"
    program += "; cat /dev/zero > /home/y"
    begun = [start_and_wait(folder, f"{program} THEN exit 0") for folder in groups]
    small, small_go = start_and_wait(groups[0], "true THEN exit 3")
    homes = [go.parent for _, go in begun]

    def have_written() -> bool:
        for session in (small, *(session for session, _ in begun)):
            session.heartbeat()
        return all((home / "x").exists() and (home / "x").stat().st_size == 18 * MB for home in homes)

    wait_until(have_written, "each of the runs has written nearly a third", 120)
    for home in homes:
        (home / "more").touch()

    def ended() -> list[int]:
        for session in (small, *(session for session, _ in begun)):
            session.heartbeat()
        assert small.poll() is None, "it wrote nothing"
        return [number for number, (session, _) in enumerate(begun) if session.poll()]

    (first,) = wait_until(ended, "one of the runs has ended", 120)
    outcome = begun[first][0].poll()
    assert outcome is not None
    assert (outcome.ended, outcome.used.disk_filled_by) == ("over_disk", "this run")
    assert "runs of mlebench, this one more than any other, filled it" in (outcome.detail or "")

    let_go(small_go)  # it fails while the disk is still full
    outcome = wait_for_end(small)
    assert (outcome.ended, outcome.used.disk_filled_by) == ("infra_error", "other runs")

    shutil.rmtree(begun[first][1].parent.parent)
    for number, (session, go) in enumerate(begun):
        if number != first:
            let_go(go)
            outcome = wait_for_end(session)
            assert (outcome.ended, outcome.used.disk_filled_by) == ("finished", "other runs")


class FakeDisk:
    """A disk whose free space the test sets; what runs write to their folders is real."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.free = folder, DiskSpace(100 * MB, 1000)
        monkeypatch.setattr(resource_usage, "free_space", lambda _: self.free)
        monkeypatch.setattr(resource_usage, "free_space_floor", lambda _: DiskSpace(MB, 10))

    def start(self, name: str) -> DiskWatch:
        work = self.folder / "runs" / f"group of {name}" / ".work" / name
        (work / "home").mkdir(parents=True)
        notes = partial(DiskNotes, str(paths.disk_note(work)), paths.disk_notes(work))
        return DiskWatch([str(work / "home")], str(work), notes)

    def write(self, name: str, megabytes: int = 0, files: int = 0) -> None:
        (home,) = self.folder.glob(f"runs/*/.work/{name}/home")
        (home / "file").write_bytes(bytes(megabytes * MB))
        for number in range(files):
            (home / str(number)).touch()
        self.free = DiskSpace(self.free.bytes - megabytes * MB, self.free.files - files)

    def judge(self, runs: dict[str, DiskWatch]) -> dict[str, str]:
        """Who filled the disk, as each run sees it."""
        for watch in runs.values():
            assert watch.shortage(tuple)
        shortages = {name: watch.shortage(tuple) for name, watch in runs.items()}
        return {name: shortage.by for name, shortage in shortages.items() if shortage}


@pytest.fixture
def fake_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    return FakeDisk(tmp_path, monkeypatch)


def test_the_run_that_wrote_most_ends(fake_disk: FakeDisk) -> None:
    runs = {name: fake_disk.start(name) for name in "abcd"}
    for name, megabytes in {"a": 20, "b": 20, "c": 19, "d": 1}.items():
        fake_disk.write(name, megabytes)
    fake_disk.free = DiskSpace(0, 900)
    assert fake_disk.judge(runs) == {"a": "other runs", "b": "this run", "c": "other runs", "d": "other runs"}
    shutil.rmtree(fake_disk.folder / "runs" / "group of b")  # it is stored, but that freed nothing
    assert fake_disk.judge({name: runs[name] for name in "acd"})["a"] == "others"


def test_runs_do_not_end_because_of_what_others_wrote(fake_disk: FakeDisk) -> None:
    runs = {name: fake_disk.start(name) for name in "abc"}
    for name in runs:
        fake_disk.write(name, 10)
    fake_disk.free = DiskSpace(0, 900)
    assert fake_disk.judge(runs) == dict.fromkeys("abc", "others")


def test_a_dead_run_is_not_blamed_and_its_neighbours_neither(fake_disk: FakeDisk) -> None:
    runs = {name: fake_disk.start(name) for name in "abc"}
    fake_disk.write("a", 60)
    for name in "bc":
        fake_disk.write(name, 5)
    fake_disk.free = DiskSpace(0, 900)
    assert fake_disk.judge(runs)["a"] == "this run"
    (note,) = fake_disk.folder.glob("runs/*/.work/a/disk.json")
    os.utime(note, (0, 0))  # its supervisor was killed long ago, and nobody has removed its folder
    assert fake_disk.judge({name: runs[name] for name in "bc"}) == {"b": "others", "c": "others"}


def test_the_run_that_made_most_files_ends(fake_disk: FakeDisk) -> None:
    """Links are not files, and bytes do not matter then."""
    runs = {name: fake_disk.start(name) for name in "ab"}
    fake_disk.write("a", megabytes=5, files=300)
    (home,) = fake_disk.folder.glob("runs/*/.work/a/home")
    for number in range(200):
        (home / f"link-{number}").hardlink_to(home / "0")
    fake_disk.write("b", files=400)
    fake_disk.free = fake_disk.free._replace(files=9)
    assert fake_disk.judge(runs) == {"a": "other runs", "b": "this run"}


@pytest.mark.parametrize(("files", "free"), [(0, 0), (100_000, 1001)])
def test_a_disk_without_a_fixed_number_of_files_has_no_floor_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, free: int
) -> None:
    """btrfs says that there are 0 in all."""
    disk = SimpleNamespace(f_frsize=1, f_blocks=1 << 40, f_bavail=1 << 40, f_files=files, f_favail=free)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    require_free_space(tmp_path, 50 * MB)
    if files:
        with pytest.raises(StorageError, match=r"1001 inodes are free, 1500 are needed .*: remove some files"):
            require_free_space(tmp_path, 50 * MB, 1000)


def test_a_full_disk_is_named_with_what_it_lacks(small_disk: Path, tmp_path: Path) -> None:
    require_free_space(small_disk, 50 * MB)  # of a small disk, a hundredth is enough besides
    with pytest.raises(StorageError, match=str(small_disk)):
        require_free_space(small_disk, 200 * MB)
    fill(small_disk)
    with pytest.raises(StorageError, match="0 MiB are free"):
        require_free_space(small_disk, None)
    require_free_space(tmp_path, 50 * MB)
