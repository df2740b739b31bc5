"""Trees: files by name, wherever they lie. A folder is one, and so is an archive, also one inside another."""

import io
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Protocol, cast

from mlebench.errors import PrerequisiteError

COPY_BYTES = 1 << 20


class Tree(Protocol):
    """Read-only files; names are relative, with forward slashes."""

    label: str

    def glob(self, pattern: str) -> list[str]:
        """Names that match, sorted; `*` stays within a folder, `**` does not."""
        ...

    def open(self, name: str) -> BinaryIO: ...

    def path(self, name: str) -> Path | None:
        """Where the file lies on disk by itself, if it does."""
        ...

    def exists(self, name: str) -> bool: ...


class FolderTree:
    def __init__(self, folder: Path):
        self.label = str(folder)
        self._folder = folder.absolute()

    def glob(self, pattern: str) -> list[str]:
        literal = "/".join(_parts(pattern)).replace("[", "[[]")  # to pathlib a bracket opens a set of characters
        prefix = len(str(self._folder)) + 1
        return sorted(str(path)[prefix:] for path in self._folder.glob(literal) if path.is_file())

    def open(self, name: str) -> BinaryIO:
        try:
            return (self._folder / name).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise missing(self, name) from None

    def path(self, name: str) -> Path | None:
        return self._folder / name

    def exists(self, name: str) -> bool:
        return (self._folder / name).is_file()


class ZipTree:
    def __init__(self, archive: Path):
        self.label = str(archive)
        with _archive_errors(self.label):
            self._zip = zipfile.ZipFile(archive)

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        return {info.filename: info for info in self._zip.infolist() if not info.is_dir() and _safe(info.filename)}

    def glob(self, pattern: str) -> list[str]:
        matches = _pattern(pattern).fullmatch
        return sorted(name for name in self._members if matches(name))

    def open(self, name: str) -> BinaryIO:
        if name not in self._members:
            raise missing(self, name)
        with _archive_errors(f"{self.label}, member {name}"):
            member = _Member(self._zip.open(self._members[name]), f"{self.label}, member {name}")
            return cast(BinaryIO, io.BufferedReader(member, COPY_BYTES))

    def path(self, name: str) -> Path | None:  # noqa: ARG002
        return None

    def exists(self, name: str) -> bool:
        return name in self._members

    def close(self) -> None:
        self._zip.close()


class _Member(io.RawIOBase):
    """A member of an archive; damage that shows while it is read is told as such."""

    def __init__(self, stream: IO[bytes], what: str):
        self._stream = stream
        self._what = what

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _archive_errors(self._what):
            return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with _archive_errors(self._what):
            content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def missing(tree: Tree, name: str) -> PrerequisiteError:
    return PrerequisiteError(f"the raw data lacks {name} (looked in {tree.label}); get the data again, whole")


def copy_out(tree: Tree, name: str, destination: Path) -> None:
    """Write a file of a tree to a new place."""
    with tree.open(name) as source, destination.open("xb") as target:
        shutil.copyfileobj(source, target, COPY_BYTES)


def place(tree: Tree, name: str, destination: Path) -> None:
    """Put a file of a tree at a new place: linked where it can be, else copied."""
    path = tree.path(name)
    if path is None:
        copy_out(tree, name, destination)
        return
    if path.is_symlink():  # a link to a link would point into the raw folder; the file itself is wanted
        path = path.resolve()
    try:
        os.link(path, destination)
    except FileNotFoundError:
        if path.exists():
            raise
        raise missing(tree, name) from None
    except FileExistsError:
        raise
    except OSError:  # another disk, or one without links
        copy_out(tree, name, destination)


@contextmanager
def _archive_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise PrerequisiteError(f"{what} cannot be read ({error}); get the archive again") from error
    except RuntimeError as error:  # how zipfile reports an encrypted member
        if "password" not in str(error) and "encrypted" not in str(error):
            raise
        raise PrerequisiteError(f"{what} is encrypted; get the archive again") from error


def _safe(name: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise PrerequisiteError(
            f"archive member {name} would climb out of its folder; this archive is not to be trusted"
        )
    return True


def _parts(glob: str) -> list[str]:
    """The pattern, folder by folder; `**` at its end stands for all files below."""
    parts = glob.split("/")
    if any("**" in part and part != "**" for part in parts):
        raise ValueError(f"in the pattern {glob!r}, ** must stand between slashes")
    return [*parts, "*"] if parts[-1] == "**" else parts


def _pattern(glob: str) -> re.Pattern[str]:
    pieces = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    pattern = "/".join(_parts(glob))
    return re.compile("".join(pieces.get(piece) or re.escape(piece) for piece in re.split(r"(\*\*/|\*|\?)", pattern)))
