"""Archives come from outside, so their members are looked over before anything is taken from them."""

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mlebench.errors import PrerequisiteError

# Deflate cannot shrink more than 1032 times, but what is worth competing on does not shrink anywhere near that.
BOMB_RATIO, BOMB_BYTES = 300, 1 << 30


class Member(NamedTuple):
    """What an archive says of one of its members."""

    name: str
    size: int
    is_folder: bool = False
    is_special: bool = False  # a link or a device
    packed_size: int | None = None


class Inspection:
    """Refuses, by name, a member that could write where it should not, or more than it should."""

    def __init__(self, label: str, archive_bytes: int, names: Iterable[str] = ()):
        """With the names of all members, a file is refused that others take for a folder, whichever comes first."""
        self._label = label
        self._most = max(BOMB_BYTES, BOMB_RATIO * archive_bytes)
        self._total = 0
        self._files: dict[str, str] = {}
        self._folders: set[str] = set()
        for folder in {name.rpartition("/")[0].casefold() for name in names}:
            self._add_folder(folder)

    def look_at(self, member: Member) -> None:
        self._total += member.size
        fault = _fault(member) or self._clash(member)
        if fault is None and self._total > self._most:
            fault = "would unpack to far more than the archive can honestly hold"
        if fault:
            raise PrerequisiteError(f"{self._label}: member {member.name} {fault}; this archive is not to be trusted")

    def _clash(self, member: Member) -> str | None:
        """What keeps the member from lying beside those before it, on a disk that may not know case."""
        name = member.name.rstrip("/").casefold()
        folder = name if member.is_folder else name.rpartition("/")[0]
        if file := self._add_folder(folder):
            return f"lies in {file}, which is a file"
        if member.is_folder:
            return None
        if name in self._folders:
            return "is a file, but other members lie in a folder of that name"
        if name in self._files:
            return f"has the same name as {self._files[name]}, but for case"
        self._files[name] = member.name
        return None

    def _add_folder(self, folder: str) -> str | None:
        """Note a folder and those above it; a file that is in the way."""
        while folder and folder not in self._folders:
            if folder in self._files:
                return self._files[folder]
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]
        return None


def _fault(member: Member) -> str | None:
    name = member.name
    if name.startswith("/") or "\\" in name or (".." in name and ".." in name.split("/")) or name[1:2] == ":":
        return "would climb out of its folder"
    if "\0" in name:
        return "has a name that no file can have"
    if member.is_special:
        return "is a link or a device"
    if member.packed_size is not None and member.size > max(BOMB_BYTES, BOMB_RATIO * member.packed_size):
        return "would unpack to far more than it can honestly hold"
    return None


@contextmanager
def archive_errors(what: str) -> Iterator[None]:
    """Damage is for the person at the keyboard, not a traceback."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise PrerequisiteError(f"{what} cannot be read ({error}); get the archive again") from error
    except OSError as error:
        if error.errno is not None:
            raise
        # how bz2 and gzip report damage
        raise PrerequisiteError(f"{what} cannot be read ({error}); get the archive again") from error
    except RuntimeError as error:  # how zipfile reports an encrypted member
        if "password" not in str(error) and "encrypted" not in str(error):
            raise
        raise PrerequisiteError(f"{what} is encrypted; get the archive again") from error
