"""What processes and folders use, measured from outside: for limits that no control group enforces."""

import contextlib
import ctypes
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from mlebench.core.os_errors import DiskSpace, free_space, free_space_floor
from mlebench.sandbox.shared_disk import DiskNote, DiskNotes, DiskShortage

PAGE = os.sysconf("SC_PAGE_SIZE")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
DEEPEST = 200  # levels of folders; no honest tree goes deeper
TASK_VARIABLE = "MLEBENCH_TASK"  # in a plain process: which task it belongs to
LONGEST_PAUSE = 30.0  # seconds between two measurements: an agent must not gain time by making them slow
FREED = 3.0  # seconds until a disk shows that deleted files are gone
MOST_OPEN = 500_000  # descriptors and threads; no honest program has as many, and no limit is checked while we look
LIBC = ctypes.CDLL(None)
KCMP, KCMP_FILES = {"x86_64": 312, "aarch64": 272}, 2  # the number of the system call


def descendants(root: int) -> set[int]:
    """The processes that a process has started, directly or indirectly."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 there may be thousands
        if name.isdigit() and (parent := _parent(name)) is not None:
            children.setdefault(parent, []).append(int(name))
    pids: set[int] = set()
    pending = [root]
    while pending:
        new = set(children.get(pending.pop(), ())) - pids
        pids |= new
        pending += new
    return pids


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 there may be thousands
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def marked(name: str) -> set[int]:
    """The processes of a plain process' task, by a variable of their own; a program may have removed it.

    A person who looks into the task's folder has its name in the environment, too, as `PWD` for example.
    """
    mark, pids = f"{TASK_VARIABLE}={name}".encode(), set()
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            if mark in file.read():
                pids.add(int(pid))
    return pids


def memory_of(pids: Iterable[int]) -> int:
    """The memory that processes hold; shared memory counts for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += _resident(str(pid)) or max(_resident(f"{pid}/task/{thread}") for thread in _threads(pid))
    return total


def _resident(process: str) -> int:
    """The memory of a process or a thread; 0 if it has ended, as the first thread may have long before the process."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * PAGE
    return 0


def count_threads(pids: Iterable[int]) -> int:
    """How many threads processes have, which is what a control group limits."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += len(_threads(pid))
    return total


def count_threads_of(user: int) -> int:
    """How many threads a user has on this machine."""
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user:
                pids.append(int(name))
    return count_threads(pids)


def _threads(pid: int) -> list[int]:
    """The threads of a process, if it exists."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208


class DiskWatch:
    """How much space folders take up, measured repeatedly: for a tenth of the time, or more if that would be too rare.

    `work` holds them, and what we write ourselves for the run: that is the run's, too, when a disk is full.
    """

    def __init__(self, folders: Iterable[str], work: str, notes: Callable[[DiskSpace], DiskNotes]):
        self._folders, self._work = list(folders), work
        self._devices = {os.stat(folder).st_dev for folder in (*self._folders, work)}
        self._next = 0.0
        self.used: int | None = None
        self._floor = free_space_floor(work)
        self._free_at_start = free_space(work)
        self._notes = notes(self._free_at_start)
        self._at_start = _measure([work]).space
        self._last_written = DiskSpace(0, 0)
        self._is_short = False

    def shortage(self, pids: Callable[[], Iterable[int]]) -> DiskShortage | None:
        """Who has filled the disk; None if it is not full, or was so from the start, or does not answer."""
        try:
            units = self._short_units(free_space(self._work))
            if not units:
                self._is_short = False
                return None
            is_agreed, self._is_short = self._is_short, True
            if not is_agreed:  # measuring may take long
                self._note(self._last_written)
            deleted = _deleted(pids(), self._devices) or DiskSpace(0, 0)
            own = self._note(self._written(deleted), pids, when_full=not is_agreed)
            everyone, fresh = self._notes.read()
            free = free_space(self._work)  # after the measurement: our share is not exaggerated
        except OSError:
            return None
        runs = fresh if is_agreed else [DiskNote(note.run, note.free_at_start) for note in everyone]
        shortages = [DiskShortage(unit, getattr(free, unit), own, tuple(runs), is_agreed) for unit in units]
        return max(shortages, key=lambda shortage: (shortage.is_own, shortage.is_ours))

    def _note(
        self, written: DiskSpace, pids: Callable[[], Iterable[int]] = tuple, *, when_full: bool = True
    ) -> DiskNote:
        note = self._notes.own._replace(written=written, may_hide=may_hide_files(pids(), self._devices))
        return self._notes.write(note._replace(written_when_full=written) if when_full else note)

    def _short_units(self, free: DiskSpace) -> list[Literal["bytes", "files"]]:
        floor, start = self._floor, self._free_at_start
        units: list[Literal["bytes", "files"]] = ["bytes"] if free.bytes < floor.bytes <= start.bytes else []
        return [*units, "files"] if free.files < floor.files <= start.files else units

    def _written(self, hidden: DiskSpace) -> DiskSpace:
        return self._since_start(_measure([self._work]).space, hidden)

    def _since_start(self, seen: DiskSpace, hidden: DiskSpace) -> DiskSpace:
        start = self._at_start
        return DiskSpace(
            max(0, seen.bytes + hidden.bytes - start.bytes), max(0, seen.files + hidden.files - start.files)
        )

    def shortage_after_end(self, before: DiskShortage) -> DiskShortage:
        """Return the shortage as it is once every process has ended, when what they had hidden is free."""
        visible = self._written(DiskSpace(0, 0))
        deadline = time.monotonic() + FREED
        while True:
            freed = max(0, getattr(free_space(self._work), before.unit) - before.free)
            seen = visible._replace(**{before.unit: getattr(visible, before.unit) + freed})
            own = self._note(DiskSpace(*map(max, seen, before.own.written)))
            after = before._replace(own=own, runs=tuple(self._notes.read()[1]))
            if after.is_own or time.monotonic() > deadline:
                return after
            time.sleep(0.1)

    def fault(self, limit: int | None, inodes: int | None, pids: Callable[[], Iterable[int]]) -> str | None:
        """Which limit is exceeded, if any."""
        begun = time.monotonic()
        if begun < self._next or (limit is None and inodes is None):
            return None
        used, deleted = _measure(self._folders, limit, inodes), _deleted(pids(), self._devices)
        if deleted is None:
            return f"more than {MOST_OPEN} files were held open"
        self.used = used.blocks + deleted.bytes
        self._last_written = self._since_start(used.space, deleted)
        self._next = time.monotonic() + min(max(1.0, 10 * (time.monotonic() - begun)), LONGEST_PAUSE)
        if used.too_deep:
            return f"folders were made more than {DEEPEST} levels deep"
        if limit is not None and self.used > limit:
            return f"more than {limit} bytes were written"
        if inodes is not None and used.files + deleted.files > inodes:
            return f"more than {inodes} files and folders were made"
        return None


def _measure(folders: Iterable[str], limit: int | None = None, inodes: int | None = None) -> "_TreeUsage":
    used = _TreeUsage(limit, inodes)
    for folder in folders:
        with contextlib.suppress(OSError):
            used.add_folder(os.open(folder, FOLDER), 0)
    return used


# Not `core.untrusted.walk`: the supervisor measures many times, counts folders as well and opens those that are closed.
class _TreeUsage:
    """What a tree takes up, counted until it is too much. Its owner may replace any folder by a link meanwhile."""

    def __init__(self, limit: int | None, inodes: int | None):
        self._limit, self._inodes = limit, inodes
        self._seen: set[tuple[int, int]] = set()
        self.blocks = self.files = self._inodes_used = 0
        self.too_deep = False

    @property
    def space(self) -> DiskSpace:
        return DiskSpace(self.blocks, self._inodes_used)

    @property
    def _is_too_much(self) -> bool:
        over_inodes = self._inodes is not None and self.files > self._inodes
        return self.too_deep or over_inodes or (self._limit is not None and self.blocks > self._limit)

    def add_folder(self, folder: int, depth: int) -> None:
        """Count what an open folder holds, and close it."""
        try:
            with os.scandir(folder) as entries:
                inner = [entry.name for entry in entries if self._add(entry)]
            self.too_deep |= bool(inner) and depth >= DEEPEST
            for name in inner:
                if self._is_too_much:
                    return
                with contextlib.suppress(OSError):
                    self.add_folder(open_folder(folder, name), depth + 1)
        finally:
            os.close(folder)

    def _add(self, entry: os.DirEntry[str]) -> bool:
        """Count an entry; True if it is a folder."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        self.files += 1
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            if (status.st_dev, status.st_ino) in self._seen:
                return False
            self._seen.add((status.st_dev, status.st_ino))
        self._inodes_used += 1
        self.blocks += status.st_blocks * 512
        return stat.S_ISDIR(status.st_mode)


def open_folder(parent: int, name: str) -> int:
    """Open a folder inside an open one, without following links."""
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:  # closed by its owner, who may be us under another name
        _open_up(f"/proc/self/fd/{parent}/{name}")
        return os.open(name, FOLDER, dir_fd=parent)


def _open_up(folder: str) -> None:
    """Make a folder accessible; leave it alone if it has become a link meanwhile."""
    descriptor = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)


class _TooManyOpenFilesError(Exception):
    pass


class _OpenFileBudget:
    """How many open files were looked at."""

    def __init__(self) -> None:
        self._left = MOST_OPEN

    def take(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            raise _TooManyOpenFilesError


def _deleted(pids: Iterable[int], devices: set[int]) -> DiskSpace | None:
    """The space of deleted files and folders that a process still has open or mapped; None if too many are open."""
    seen: dict[tuple[int, int], int] = {}
    looks = _OpenFileBudget()
    try:
        for pid in pids:
            for status in _open_files(pid, looks):
                if status.st_nlink == 0 and status.st_dev in devices:
                    seen[status.st_dev, status.st_ino] = status.st_blocks * 512
            for file, size, _ in _deleted_mappings(pid, devices, looks):
                seen[file] = max(size, seen.get(file, 0))
    except _TooManyOpenFilesError:
        return None
    return DiskSpace(sum(seen.values()), len(seen))


def _open_files(pid: int, looks: _OpenFileBudget) -> Iterator[os.stat_result]:
    with contextlib.suppress(PermissionError):
        for descriptor in _descriptors(pid, looks):
            with contextlib.suppress(OSError):
                yield os.stat(descriptor)


def _descriptors(pid: int, looks: _OpenFileBudget, kind: str = "fd") -> Iterator[str]:
    """The paths of a process's descriptors. A thread may have its own, and may outlive the first thread.

    PermissionError, after all others, if we may not look into a thread.
    """
    closed = None
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            looks.take()
            if thread != pid and _share_files(pid, thread):
                continue
            folder, names = f"/proc/{pid}/task/{thread}", []
            try:
                names = os.listdir(f"{folder}/fd")  # noqa: PTH208
            except PermissionError as error:
                closed = error if _resident(f"{pid}/task/{thread}") else closed  # one that has ended has no files
            except OSError:
                pass
            for name in names:
                looks.take()
                yield f"{folder}/{kind}/{name}"
    if closed:
        raise closed


def _share_files(pid: int, thread: int) -> bool:
    """Whether a thread has the same descriptors as its process; False if we cannot tell."""
    number = KCMP.get(os.uname().machine)
    return number is not None and LIBC.syscall(number, pid, thread, KCMP_FILES, 0, 0) == 0


def _deleted_mappings(
    pid: int, devices: set[int], looks: _OpenFileBudget
) -> Iterator[tuple[tuple[int, int], int, bool]]:
    """Deleted files that a process has mapped: device and inode, the size, and whether that is certain.

    Without root, only as much is known as is mapped.
    """
    lines = _maps(pid).splitlines()
    looks.take(len(lines) // 10)  # most take no time
    for line in lines:
        if not line.endswith(b" (deleted)"):
            continue
        looks.take()
        addresses, _, offset, device, inode, _ = line.split(maxsplit=5)
        try:
            status = os.stat(f"/proc/{pid}/map_files/{addresses.decode()}")
        except OSError:
            major, minor = (int(number, 16) for number in device.split(b":"))
            first, last = (int(number, 16) for number in addresses.split(b"-"))
            if os.makedev(major, minor) in devices:
                yield (os.makedev(major, minor), int(inode)), int(offset, 16) + last - first, False
        else:
            if status.st_dev in devices:
                yield (status.st_dev, status.st_ino), status.st_blocks * 512, True


def _maps(pid: int) -> bytes:
    """The mappings of a process, which any of its threads that is alive shows."""
    with contextlib.suppress(OSError):
        for thread in sorted(_threads(pid), key=lambda thread: thread != pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/maps", "rb") as file:  # noqa: PTH123
                if text := file.read():
                    return text
    return b""


def may_hide_files(pids: Iterable[int], devices: set[int]) -> bool:
    """Whether processes may hold deleted files where we cannot see them: we may not look into one, descriptors are on
    their way through a socket, or a part of a file is mapped.
    """
    looks = _OpenFileBudget()
    try:
        return any(_may_hide_files(pid, devices, looks) for pid in pids)
    except _TooManyOpenFilesError:
        return True


def _may_hide_files(pid: int, devices: set[int], looks: _OpenFileBudget) -> bool:
    try:
        for descriptor in _descriptors(pid, looks, "fdinfo"):
            with contextlib.suppress(OSError), open(descriptor, "rb") as file:  # noqa: PTH123
                sent = next((line for line in file if line.startswith(b"scm_fds:")), b"scm_fds: 0")
                if int(sent.split()[1]):
                    return True
    except PermissionError:
        return not _is_first(pid)  # the relay closes itself to everyone
    return not all(is_certain for _, _, is_certain in _deleted_mappings(pid, devices, looks))


def _is_first(pid: int) -> bool:
    """Whether a process is the first of its sandbox."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        return any(line.startswith(b"NSpid:") and line.split()[-1] == b"1" for line in file)
    return True
