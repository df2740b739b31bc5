"""Archives come from outside, so their members are checked before anything is taken from them."""

import errno
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import NamedTuple
from unicodedata import normalize

from mlebench.core.errors import PrerequisiteError

# Deflate can shrink data up to 1032 times, but real competition data comes nowhere near that.
BOMB_RATIO, BOMB_BYTES = 300, 1 << 30
_LONGEST_PART, _LONGEST_NAME = 255, 4095  # bytes, as file systems allow


def plain_name(name: str) -> str:
    """A member's name as a plain relative path: `./a//b`, which some archives contain, is `a/b`."""
    if "./" in name or "//" in name or name.endswith("/."):
        return PurePosixPath(name).as_posix()
    return name


class ArchiveMember(NamedTuple):
    """What an archive says about one of its members; the name is a plain one."""

    name: str
    size: int
    is_folder: bool = False
    is_special: bool = False  # a link or a device
    packed_size: int | None = None


class MemberChecks:
    """Refuses, by name, a member that could write where it should not, or more than it should."""

    def __init__(self, label: str, archive_bytes: int, names: Iterable[str] = ()):
        """Given all member names, refuses a file that other members use as a folder, whichever comes first."""
        self._label = label
        self._most = max(BOMB_BYTES, BOMB_RATIO * archive_bytes)
        self._total = 0
        self._files: dict[str, str] = {}
        self._folders: set[str] = set()
        for folder in {name.rpartition("/")[0] for name in names}:
            self._add_folder(_folded(plain_name(folder)))

    def check(self, member: ArchiveMember) -> None:
        self._total += member.size
        fault = _fault(member) or self._clash(member)
        if fault is None and self._total > self._most:
            fault = "would unpack to far more than the archive can honestly hold"
        if fault:
            name = member.name or "''"
            raise PrerequisiteError(f"{self._label}: member {name} {fault}; do not trust this archive")

    def _clash(self, member: ArchiveMember) -> str | None:
        """Why the member clashes with earlier ones on a disk that may treat their names as the same."""
        name = _folded(member.name.rstrip("/"))
        folder = name if member.is_folder else name.rpartition("/")[0]
        if file := self._add_folder(folder):
            return f"is inside {file}, which is a file"
        if member.is_folder:
            return None
        if name in self._folders:
            return "is a file, but other members are in a folder of that name"
        if name in self._files:
            return f"has the same name as {self._files[name]}, except for case or Unicode form"
        self._files[name] = member.name
        return None

    def _add_folder(self, folder: str) -> str | None:
        """Record a folder and its parents; returns a file that is in the way."""
        while folder and folder not in self._folders:
            if folder in self._files:
                return self._files[folder]
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]
        return None


def _folded(name: str) -> str:
    """Equal for names that some disk treats as the same. Most names are ASCII, and there may be millions."""
    return name.lower() if name.isascii() else normalize("NFD", name).casefold()


def _is_too_long(name: str) -> bool:
    return len(name) > _LONGEST_NAME or any(
        len(part.encode("utf-8", "replace")) > _LONGEST_PART for part in name.split("/")
    )


def _fault(member: ArchiveMember) -> str | None:
    name = member.name
    if name.startswith("/") or "\\" in name or (".." in name and ".." in name.split("/")) or name[1:2] == ":":
        return "would climb out of its folder"
    if "\0" in name or (not member.is_folder and (name in ("", ".") or name.endswith("/"))):
        return "has a name that no file can have"
    if len(name) * 4 > _LONGEST_PART and _is_too_long(name):
        return "has a name that no disk accepts"
    if member.is_special:
        return "is a link or a device"
    if member.is_folder and member.size:
        return "is a folder, but holds bytes"
    if member.packed_size is not None and member.size > max(BOMB_BYTES, BOMB_RATIO * member.packed_size):
        return "would unpack to far more than it can honestly hold"
    return None


_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,  # of a name
)


@contextmanager
def archive_errors(label: str) -> Iterator[None]:
    """Report damage to the person at the keyboard, without a traceback."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # tarfile then lists every format it tried
        raise PrerequisiteError(f"{label} cannot be read ({reason}); get the archive again") from error
    except OSError as error:
        # bz2 and gzip report damage without an errno; a seek before the start of a file is damage too.
        if error.errno not in (None, errno.EINVAL) or error.filename is not None:
            raise
        raise PrerequisiteError(f"{label} cannot be read ({error}); get the archive again") from error
