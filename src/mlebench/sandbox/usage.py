"""What processes and folders use, measured from outside: for limits that no control group enforces."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mlebench.faults import free_space, free_space_floor

PAGE = os.sysconf("SC_PAGE_SIZE")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
DEEPEST = 200  # levels of folders; no honest tree goes deeper
FREED = 3.0  # seconds until a disk shows that deleted files are gone


def descendants(root: int) -> set[int]:
    """The processes that a process has started, directly or indirectly."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 there may be thousands
        if name.isdigit() and (parent := _parent(name)) is not None:
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    pending = [root]
    while pending:
        new = set(children.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 there may be thousands
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def marked(name: str) -> set[int]:
    """Our processes with this name in their environment; a program may have changed its own."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            if name.encode() in file.read():
                found.add(int(pid))
    return found


def memory_of(pids: Iterable[int]) -> int:
    """The memory that processes hold; shared memory counts for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            total += int(file.read().split()[1]) * PAGE
    return total


class Shortage(NamedTuple):
    """A disk that is nearly full: what was written to it since the start, and how much of that by the sandbox."""

    lost: int
    own: int
    free: int

    @property
    def is_own(self) -> bool:
        return 2 * self.own >= self.lost

    @property
    def by(self) -> str:
        return "this run" if self.is_own else "others"

    def __str__(self) -> str:
        share = f"{self.own >> 20} of {self.lost >> 20} MiB are its own"
        return f"the disk is nearly full ({self.free >> 20} MiB are free), and {self.by} filled it meanwhile ({share})"


class DiskWatch:
    """How much space folders take up, measured repeatedly but for at most a tenth of the time."""

    def __init__(self, folders: Iterable[str]):
        self._folders = list(folders)
        self._devices = {os.stat(folder).st_dev for folder in self._folders}
        self._next = 0.0
        self.used: int | None = None
        self._used_at_start = self._measure(None, None).blocks
        self._free_at_start = free_space(self._folders[0]) if self._folders else 0
        self._floor = free_space_floor(self._folders[0]) if self._folders else 0

    def _measure(self, limit: int | None, inodes: int | None) -> "_Used":
        used = _Used(limit, inodes)
        for folder in self._folders:
            with contextlib.suppress(OSError):
                used.add_folder(os.open(folder, FOLDER), 0)
        return used

    def shortage(self, pids: Callable[[], Iterable[int]]) -> Shortage | None:
        """Who has filled the disk; None if it is not full, or was so from the start, or does not answer."""
        try:
            free = free_space(self._folders[0]) if self._folders else 0
        except OSError:
            return None
        if not free < self._floor <= self._free_at_start:
            return None
        own = self._measure(None, None).blocks + _deleted(pids(), self._devices) - self._used_at_start
        return Shortage(self._free_at_start - free, own, free)

    def shortage_after_end(self, before: Shortage) -> Shortage:
        """The same once every process has ended: what they had hidden is free now. Some disks take a moment."""
        visible = self._measure(None, None).blocks - self._used_at_start
        deadline = time.monotonic() + FREED
        while True:
            own = visible + max(0, free_space(self._folders[0]) - before.free)
            after = before._replace(own=max(before.own, own))
            if after.is_own or time.monotonic() > deadline:
                return after
            time.sleep(0.1)

    def fault(self, limit: int | None, inodes: int | None, pids: Callable[[], Iterable[int]]) -> str | None:
        """Which limit is exceeded, if any."""
        begun = time.monotonic()
        if begun < self._next or (limit is None and inodes is None):
            return None
        used = self._measure(limit, inodes)
        self.used = used.blocks + _deleted(pids(), self._devices)
        self._next = time.monotonic() + max(1.0, 10 * (time.monotonic() - begun))
        if used.too_deep:
            return f"folders were made more than {DEEPEST} levels deep"
        if limit is not None and self.used > limit:
            return f"more than {limit} bytes were written"
        if inodes is not None and used.files > inodes:
            return f"more than {inodes} files and folders were made"
        return None


class _Used:
    """What a tree takes up, counted until it is too much. Its owner may replace any folder by a link meanwhile."""

    def __init__(self, limit: int | None, inodes: int | None):
        self._limit, self._inodes = limit, inodes
        self._seen: set[tuple[int, int]] = set()
        self.blocks = self.files = 0
        self.too_deep = False

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


def _deleted(pids: Iterable[int], devices: set[int]) -> int:
    """The space of deleted files that a process still has open or mapped."""
    seen: dict[tuple[int, int], int] = {}
    for pid in pids:
        for status in _open_files(pid):
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_dev in devices:
                seen[status.st_dev, status.st_ino] = status.st_blocks * 512
        for file, size in _deleted_mappings(pid, devices):
            seen[file] = max(size, seen.get(file, 0))
    return sum(seen.values())


def _open_files(pid: int) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                yield os.stat(f"/proc/{pid}/fd/{name}")


def _deleted_mappings(pid: int, devices: set[int]) -> Iterator[tuple[tuple[int, int], int]]:
    """Deleted files that a process has mapped: device and inode, and the size; without root, as far as it is mapped."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:  # noqa: PTH123
        for line in file:
            if not line.endswith(b" (deleted)\n"):
                continue
            addresses, _, offset, device, inode, _ = line.split(maxsplit=5)
            try:
                status = os.stat(f"/proc/{pid}/map_files/{addresses.decode()}")
            except OSError:
                major, minor = (int(number, 16) for number in device.split(b":"))
                first, last = (int(number, 16) for number in addresses.split(b"-"))
                if os.makedev(major, minor) in devices:
                    yield (os.makedev(major, minor), int(inode)), int(offset, 16) + last - first
            else:
                if status.st_dev in devices:
                    yield (status.st_dev, status.st_ino), status.st_blocks * 512


def may_hide_files(pids: Iterable[int]) -> bool:
    """Whether processes may hold deleted files where we cannot see them: we may not look into one, or descriptors are
    on their way through a socket.
    """
    return any(_may_hide_files(pid) for pid in pids)


def _may_hide_files(pid: int) -> bool:
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}", "rb") as file:  # noqa: PTH123
                sent = next((line for line in file if line.startswith(b"scm_fds:")), b"scm_fds: 0")
                if int(sent.split()[1]):
                    return True
    except PermissionError:
        return not _is_first(pid)  # the relay closes itself to everyone
    except OSError:  # it has ended
        pass
    return False


def _is_first(pid: int) -> bool:
    """Whether a process is the first of its sandbox."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        return any(line.startswith(b"NSpid:") and line.split()[-1] == b"1" for line in file)
    return True
