"""Trees: files by name, wherever they are. A folder is one, and so is an archive, even one inside another."""

import fcntl
import os
import re
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import BinaryIO, Protocol

from mlebench.core.errors import CompetitionError, RawDataError
from mlebench.core.suggestions import did_you_mean

COPY_BYTES = 1 << 20
EPOCH = 315_532_800 * 10**9  # 1980, in nanoseconds: the first time that a member of a zip archive can have
CLONE_BLOCKS = 0x40049409  # Linux' FICLONE: two files that share their blocks until one is changed
TIME_GRAINS = (1, 100, 1_000, 10**6, 10**7, 10**9, 2 * 10**9)  # nanoseconds: how exactly disks store a file's time
MODE = 0o644  # of the files that we write: an agent that copies one can write to the copy


def ignore_progress(copied: int) -> None:
    """Ignore how many bytes were copied."""


class Tree(Protocol):
    """Read-only files; names are relative, with forward slashes."""

    label: str

    def label_of(self, name: str) -> str:
        """A file as the person at the keyboard knows it: its place on disk, including the archives it is in."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Names that match, sorted; `*` stays within a folder, `**` does not."""
        ...

    def open(self, name: str) -> BinaryIO: ...

    def path(self, name: str) -> Path | None:
        """The file's own path on disk, if it has one."""
        ...

    def exists(self, name: str) -> bool: ...

    def size(self, name: str) -> int: ...

    def facts(self, name: str) -> dict[str, int]:
        """What is known about a file without reading it: its size, and its checksum or time."""
        ...

    def extract(self, name: str, destination: str, report: Callable[[int], None] = ignore_progress) -> None:
        """Write the file to a new place; `report` is told how many bytes are copied, unless that takes no time."""
        ...

    def time_ns(self, name: str) -> int:
        """The time that a copy of the file gets once it is complete: about that of the file or its archive."""
        ...

    def is_extracted(self, name: str, destination: str) -> bool:
        """Whether an earlier attempt put the whole file there."""
        ...


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One file of a tree."""

    tree: Tree
    name: str

    @property
    def size(self) -> int:
        return self.tree.size(self.name)

    def open(self) -> BinaryIO:
        return self.tree.open(self.name)

    def read(self) -> bytes:
        with self.open() as stream:
            return stream.read()


class FolderTree:
    """The files below a folder."""

    def __init__(self, folder: Path, archive: str | None = None):
        """`archive` is the label of one that was unpacked there."""
        self.label = archive or str(folder)
        self._before = inside(archive) if archive else f"{folder}/"
        self._folder = folder.absolute()

    def label_of(self, name: str) -> str:
        return f"{self._before}{name}"

    @cached_property
    def anonymous(self) -> "FolderTree":
        """A tree that places files so that nothing but their content says which raw files they are."""
        return AnonymousTree(self._folder)

    @cached_property
    def _descriptor(self) -> int:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        weakref.finalize(self, os.close, descriptor)
        return descriptor

    def glob(self, pattern: str) -> list[str]:
        return sorted(set(self._find("", _parts(pattern))))

    def _find(self, folder: str, parts: list[str]) -> Iterator[str]:
        """Files below a folder (its name ends with a slash) that the parts of a pattern lead to."""
        head, *further = parts
        if further and _is_plain_name(head):  # no need to list its neighbours, which may be many
            if (self._folder / folder / head).is_dir():
                yield from self._find(f"{folder}{head}/", further)
            return
        matches = pattern_of(head).fullmatch
        for entry in self._entries(folder):
            if head == "**":
                if entry.is_dir(follow_symlinks=False):
                    yield from self._find(f"{folder}{entry.name}/", parts)
            elif matches(entry.name) and entry.is_dir() and further:
                yield from self._find(f"{folder}{entry.name}/", further)
            elif matches(entry.name) and not further and entry.is_file():
                yield folder + entry.name
        if head == "**":
            yield from self._find(folder, further)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._folder / folder) as entries:
            yield from entries

    def open(self, name: str) -> BinaryIO:
        if not self.exists(name):  # opening a named pipe would block
            raise missing(self, name)
        return (self._folder / name).open("rb", buffering=COPY_BYTES)

    def path(self, name: str) -> Path | None:
        return self._folder / name

    def exists(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def size(self, name: str) -> int:
        return self.facts(name)["size"]

    def facts(self, name: str) -> dict[str, int]:
        status = self._status(name)
        return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}

    def _status(self, name: str) -> os.stat_result:
        try:
            return os.stat(name, dir_fd=self._descriptor)
        except (FileNotFoundError, NotADirectoryError):
            raise missing(self, name) from None

    def time_ns(self, name: str) -> int:
        return self._status(name).st_mtime_ns

    def is_extracted(self, name: str, destination: str) -> bool:
        there, source = os.lstat(destination), self._status(name)
        if (there.st_dev, there.st_ino) == (source.st_dev, source.st_ino):
            return self._may_be_linked(source)
        return is_complete(there, source.st_size, self._time_of_copy(source))

    def extract(self, name: str, destination: str, report: Callable[[int], None] = ignore_progress) -> None:
        """Link the file, so that its bytes exist once; where that is impossible, share its blocks or copy it."""
        if self._may_be_linked(self._status(name)):
            try:
                # With a folder descriptor, a symbolic link is followed; without one, the link itself would be linked.
                os.link(name, destination, src_dir_fd=self._descriptor)
            except FileExistsError:
                raise
            except (FileNotFoundError, NotADirectoryError):
                raise missing(self, name) from None
            except OSError:  # another disk, one without links, or another user's file
                pass
            else:
                return
        self._copy(name, destination, report)

    @cached_property
    def _needed_mode(self) -> int:
        """Agents copy files with their mode, and must be able to write to the copy. Root's agents are another user."""
        return stat.S_IWUSR | (stat.S_IROTH if os.geteuid() == 0 else 0)

    def _may_be_linked(self, status: os.stat_result) -> bool:
        """Whether a raw file can be used as it is. A link has the file's own mode, which is not ours to change."""
        return status.st_mode & self._needed_mode == self._needed_mode

    def _time_of_copy(self, status: os.stat_result) -> int:
        return status.st_mtime_ns

    def _copy(self, name: str, destination: str, report: Callable[[int], None]) -> None:
        time_ns = self._time_of_copy(self._status(name))
        with self.open(name) as source, create(destination, time_ns=time_ns) as target:
            try:
                fcntl.ioctl(target.fileno(), CLONE_BLOCKS, source.fileno())
            except OSError:  # most disks cannot
                while piece := source.read(COPY_BYTES):
                    report(target.write(piece))


class AnonymousTree(FolderTree):
    """Files that are placed as copies, all with one time: a link has the raw file's inode number and time.

    Raw files are often in the order of their classes, and so are their inode numbers.
    """

    def _may_be_linked(self, status: os.stat_result) -> bool:  # noqa: ARG002
        return False

    def _time_of_copy(self, status: os.stat_result) -> int:  # noqa: ARG002
        return EPOCH


def inside(archive: str) -> str:
    """The prefix of names in an archive: `raw/a.zip: ` or, for an archive inside it, `raw/a.zip: b.7z/`."""
    return f"{archive}/" if ": " in archive else f"{archive}: "


@contextmanager
def create(destination: str, buffering: int = 0, time_ns: int | None = None) -> Iterator[BinaryIO]:
    """A new file. It gets its time when everything is written: one that has it already is complete."""
    with open(destination, "xb", buffering=buffering, opener=_open_new) as target:
        yield target
        target.flush()
        if time_ns is not None:
            os.utime(target.fileno(), ns=(time_ns, time_ns))


def create_whole(destination: str, content: bytes | memoryview, time_ns: int | None = None) -> None:
    """A new file whose content is at hand: `create` in fewer steps, since there may be millions."""
    descriptor = _open_new(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        if time_ns is not None:
            os.utime(descriptor, ns=(time_ns, time_ns))
    finally:
        os.close(descriptor)


def _open_new(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, MODE)
    if _umask() & MODE:
        os.fchmod(descriptor, MODE)
    return descriptor


@cache
def _umask() -> int:
    """What this process takes from the modes of new files. The system call for it changes it, in all threads."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    except (OSError, StopIteration):  # not Linux, or an old one
        return 0o777


def is_complete(status: os.stat_result, size: int, time_ns: int) -> bool:
    """Whether a file that was made with this time has it: it is set last. A disk may cut a time off."""
    has_time = any(status.st_mtime_ns == time_ns - time_ns % grain for grain in TIME_GRAINS)
    return stat.S_ISREG(status.st_mode) and status.st_size == size and has_time


def check_name(name: str) -> None:
    """Refuse a name that leads out of its folder."""
    if not name or (("." in name or "//" in name or name[0] == "/") and {"", ".", ".."} & {*name.split("/")}):
        raise CompetitionError(f"{name!r} is not a name inside its folder: begin with neither / nor ..")


def missing(tree: Tree, name: str) -> RawDataError:
    """The error that a file is not there; it names the file of a similar name, if there is one."""
    folder, slash, last = name.rstrip("/").rpartition("/")
    beside = {neighbour.rpartition("/")[2] for neighbour in tree.glob(f"{folder}{slash}*")}
    question = f"; {hint}" if (hint := did_you_mean(last, beside)).startswith("did you") else ""
    return RawDataError(f"the raw data lacks {name} (looked in {tree.label}){question}")


def pattern_of(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole names."""
    pieces = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    pattern = "/".join(_parts(glob))
    return re.compile("".join(pieces.get(piece) or re.escape(piece) for piece in re.split(r"(\*\*/|\*|\?)", pattern)))


def _is_plain_name(part: str) -> bool:
    return not set("*?") & set(part) and part not in ("", ".", "..")


def _parts(glob: str) -> list[str]:
    """The pattern, folder by folder; `**` at its end means all files below."""
    parts = glob.split("/")
    if any("**" in part and part != "**" for part in parts):
        raise CompetitionError(f"in the pattern {glob!r}, ** must be between slashes")
    return [*parts, "*"] if parts[-1] == "**" else parts
