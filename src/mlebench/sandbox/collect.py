"""Copies what an agent left out of its folders, after its last process is dead. All of it is hostile.

Links are not followed, at any level; only regular files are taken, up to limits on number and size. What was left out
is reported. Copies belong to the user who runs the benchmark. What cannot be read is left out; if our own disk refuses
a copy, that is a StorageError, and the originals are still complete. A file for which the disk has no room is linked
instead: an agent may leave more than half of what it found free.
"""

import contextlib
import errno
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from mlebench.core.errors import StorageError
from mlebench.core.os_errors import DiskSpace, free_space, free_space_floor, reason_of
from mlebench.records.run import Collection
from mlebench.sandbox.resource_usage import DEEPEST, FOLDER, open_folder

CHUNK = 1 << 20
FULL = "the disk is full"
# What an agent can bring about by how it names, links or closes its files. Everything else is a fault of our disk.
OF_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EILSEQ)
OF_SOURCES = (*OF_NAMES, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV)


@dataclass
class CopyLimits:
    """How much may be copied."""

    bytes: int = 20 << 30
    files: int = 20_000
    largest: int = 8 << 30
    needed: str | None = None  # by an agent that filled the disk: only this must be stored, the rest if it fits


@dataclass
class CollectedFiles:
    files: int = 0
    bytes: int = 0
    left_out: list[dict[str, str]] = field(default_factory=list)  # the first of them, with the reason
    left_out_in_all: int = 0

    def leave_out(self, name: str, reason: str) -> None:
        self.left_out_in_all += 1
        if len(self.left_out) < 20:
            self.left_out.append({"name": name[:200], "reason": reason})

    def to_record(self) -> Collection:
        return msgspec.convert(asdict(self), Collection)


def collect(
    source: Path, target: Path, room: CopyLimits | None = None, seen: CollectedFiles | None = None
) -> CollectedFiles:
    """Copy a folder's regular files; `source` must not be a link itself."""
    room, seen = room or CopyLimits(), seen or CollectedFiles()
    with _storing(target):
        target.mkdir(parents=True, exist_ok=True)
    try:
        folder = os.open(source, FOLDER)
    except OSError as error:
        _leave_out(seen, source.name, error)
        return seen
    try:
        _collect(folder, target, "", 0, room, seen)
    finally:
        os.close(folder)
    return seen


# Not `core.untrusted.walk`: a folder that its owner closed is opened, and every copy may end what is still allowed.
def _collect(folder: int, target: Path, prefix: str, depth: int, room: CopyLimits, seen: CollectedFiles) -> None:
    with os.scandir(folder) as listing:
        names = sorted(entry.name for entry in listing)
    for name in names:
        shown = f"{prefix}{name}"
        if depth >= DEEPEST or seen.files >= room.files:
            seen.leave_out(shown, "too many files, or folders within folders")
            if seen.left_out_in_all > 1000:
                return
            continue
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _collect_folder(folder, name, target / name, shown, depth, room, seen)
            elif stat.S_ISREG(status.st_mode):
                _collect_file(folder, name, target / name, shown, room, seen)
            else:
                seen.leave_out(shown, "is a link" if stat.S_ISLNK(status.st_mode) else "is not a regular file")
        except OSError as error:
            _leave_out(seen, shown, error)


def _collect_folder(
    folder: int, name: str, target: Path, shown: str, depth: int, room: CopyLimits, seen: CollectedFiles
) -> None:
    if room.needed and _room_left(target.parent).files < 0:
        return seen.leave_out(shown, FULL)
    inner = open_folder(folder, name)
    try:
        with _storing(target):
            target.mkdir(exist_ok=True)
        _collect(inner, target, f"{shown}/", depth + 1, room, seen)
    finally:
        os.close(inner)
    return None


def _collect_file(folder: int, name: str, target: Path, shown: str, room: CopyLimits, seen: CollectedFiles) -> None:
    source = _open(folder, name)
    with os.fdopen(source, "rb") as stream:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            return seen.leave_out(shown, "is not a regular file")
        if status.st_size > room.largest or seen.bytes + status.st_size > room.bytes:
            return seen.leave_out(shown, f"is too large ({status.st_size} bytes)")
        free, is_needed = _room_left(target.parent), room.needed in (None, shown)
        if free.files < 0 and not is_needed:
            return seen.leave_out(shown, FULL)
        fits = free.bytes >= status.st_blocks * 512
        if fits or not _link(folder, name, source, target):
            if not fits and not is_needed:
                return seen.leave_out(shown, FULL)
            with _storing(target), target.open("wb") as copy:
                _copy(stream.fileno(), copy.fileno(), status.st_size)
    seen.files += 1
    seen.bytes += status.st_size
    return None


def _room_left(folder: Path) -> DiskSpace:
    """What the disk of a folder can take until it counts as full."""
    with _storing(folder):
        free, floor = free_space(folder), free_space_floor(folder)
    return DiskSpace(free.bytes - floor.bytes, free.files - floor.files)


def _link(folder: int, name: str, source: int, target: Path) -> bool:
    """Link an open file and make it ours; False where that is impossible, or the file may be more than the agent's."""
    if os.fstat(source).st_nlink != 1:
        return False
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    try:
        os.fchown(source, os.geteuid(), os.getegid())
        os.fchmod(source, 0o644)
    except OSError:
        target.unlink()
        return False
    return True


def _open(folder: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        closed = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{closed}", 0o600)
        finally:
            os.close(closed)
        return os.open(name, flags, dir_fd=folder)


@contextlib.contextmanager
def _storing(target: Path) -> Iterator[None]:
    """Tell a fault of our disk from a name or a file that cannot be copied."""
    try:
        yield
    except OSError as error:
        if error.errno in OF_NAMES:
            raise
        raise StorageError(f"cannot write to {target}: {reason_of(error)}") from error


def _copy(source: int, target: int, size: int) -> None:
    """Copy `size` bytes; holes stay holes."""
    done = 0
    while done < size:
        try:
            start = os.lseek(source, done, os.SEEK_DATA)
        except OSError:  # only a hole is left
            break
        end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        while start < end:
            data = os.read(source, min(CHUNK, end - start))
            if not data:
                break
            view = memoryview(data)
            while view:
                view = view[os.write(target, view) :]
            start += len(data)
        done = end
    os.ftruncate(target, size)


def snapshot(path: Path, target: Path, limit: int) -> bool:
    """Keep a file as it is now; False if it is not one to keep, or changed while it was copied.

    The agent may have put a link in its place, or in its folder's.
    """
    with contextlib.suppress(OSError):
        source = _open_inside(path)
        try:
            before = os.fstat(source)
            if not stat.S_ISREG(before.st_mode) or before.st_size > limit:
                return False
            part = target.with_name(f"{target.name}.part")
            with part.open("wb") as copy:
                _copy(source, copy.fileno(), before.st_size)
            after = os.fstat(source)
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                part.unlink()
                return False
            part.replace(target)
            return True
        finally:
            os.close(source)
    return False


def _open_inside(path: Path) -> int:
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    finally:
        os.close(folder)


def remove_tree(folder: Path) -> None:
    """Remove what a sandbox wrote. `rm` copes with endlessly nested folders; Python's own function does not."""
    for command in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
        if folder.exists():  # closed folders are opened, then removed on the second try
            subprocess.run([*command, str(folder)], capture_output=True, check=False)  # noqa: S603


def _leave_out(seen: CollectedFiles, name: str, error: OSError) -> None:
    """Leave out what cannot be read, if that is the agent's doing; if it is our disk's, nothing may be lost."""
    if error.errno not in OF_SOURCES:
        raise StorageError(f"cannot read {name}: {reason_of(error)}") from error
    seen.leave_out(name, f"cannot be read ({(error.strerror or 'unknown fault').lower()})")
