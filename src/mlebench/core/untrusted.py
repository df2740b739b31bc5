"""What an agent leaves behind is hostile: links are not followed, and only regular files of bounded size are read.

A submission that is a link to the answers, an endless pipe or a device is distinguished from one that is missing.
An agent's text reaches a terminal or a page only through `plain`, and its JSON is parsed only by `parse_json`.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of

LARGEST_SUBMISSION = 8 << 30  # bytes; the largest genuine submission is well below a tenth of it

ANY_SIZE = 1 << 62  # bytes: where only a little of a file is read, any size will do
MOST_VALUES = 4_000_000  # of a JSON text; parsed, each takes up to 120 bytes

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(\x07|\x1b\\)?|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# They reverse the direction of text, end lines invisibly, or are not characters at all.
_DECEPTIVE = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
# Possessive, and to the end of the text if the string does not end: it is never tried twice.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def plain(text: str) -> str:
    """What an agent wrote, without escape codes and control characters; deceptive characters are spelled out."""
    return _DECEPTIVE.sub(lambda match: f"\\u{ord(match[0]):04x}", _ESCAPES.sub("", text))


def one_line(text: object, longest: int | None = None) -> str:
    """A text that an agent may have written, on one line; cut if it is longer than `longest` characters."""
    text = str(text)
    line = " ".join(plain(text if longest is None else text[: 4 * longest]).split())
    return line if longest is None else shorten(line, longest)


def shorten(text: str, longest: int) -> str:
    """At most `longest` characters of a text; an ellipsis stands for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def printable(text: str) -> str:
    """A name on one line, even if it is not valid text."""
    return text if text.isprintable() else ascii(text)


class JsonBoundsError(ValueError):
    """A JSON text is too large or too deep; the message completes the sentence "The text …"."""


def parse_json(
    data: bytes | str,
    most: int = MOST_VALUES,
    *,
    announce: Callable[[int], None] | None = None,
    **hooks: Any,
) -> Any:
    """The value of a JSON text; ValueError if it is not JSON, JsonBoundsError if it holds too much.

    `announce` is called before the text is parsed, with the most values that it can hold. `hooks` are those of
    `json.loads`.
    """
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
    values = most_values(text, most)
    if values > most:
        raise JsonBoundsError(f"holds more than {most} values")
    if announce:
        announce(values)
    try:
        return json.loads(text, **hooks)
    except RecursionError:
        raise JsonBoundsError("is nested too deeply") from None


def most_values(text: str, most: int) -> int:
    """The most values that a JSON text can hold; strings are looked at only if there could be more than `most`."""
    values = 1 + _marks(text, 0, len(text))
    if values <= most:
        return values
    values, strings, end = 1, 0, 0
    for strings, string in enumerate(_JSON_STRING.finditer(text), 1):
        values += _marks(text, end, string.start())
        end = string.end()
        if max(values, strings // 2) > most:  # every value has at most a name and a text
            return most + 1
    return max(values + _marks(text, end, len(text)), strings // 2)


def _marks(text: str, start: int, end: int) -> int:
    return sum(text.count(mark, start, end) for mark in ",[{")


class UntrustedFileError(Exception):
    """There is no file here that may be read; the message completes the sentence "The submission …"."""


class FileMissingError(UntrustedFileError):
    """The path does not exist or is not a regular file."""


class FileForbiddenError(PrerequisiteError):
    """We are not allowed to read a file."""


class FileTooLargeError(UntrustedFileError):
    """The file is larger than the limit."""


def open_untrusted(path: Path, limit: int = LARGEST_SUBMISSION) -> BinaryIO:
    """A regular file, opened for reading. Neither it nor its folder may be a link: an agent controls both.

    A file that we are not allowed to read is a PrerequisiteError, for the owner of the disk, not a bad submission.
    """
    try:
        descriptor = _open(path)
    except ValueError:
        raise FileMissingError("has a name that no file can have") from None
    except OSError as error:
        raise _fault(path, error) from None
    return _checked(descriptor, limit)


def _checked(descriptor: int, limit: int) -> BinaryIO:
    """The file, if it is a regular one that is not too large."""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileMissingError(f"is {kind_of(status.st_mode)}, not a regular file")
        if status.st_size > limit:
            raise FileTooLargeError(f"has {status.st_size} bytes; at most {limit} are read")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _open(path: Path) -> int:
    try:
        folder = os.open(path.parent, _FOLDER)
    except NotADirectoryError:
        if path.parent.is_symlink():
            raise FileMissingError("is in a folder that is a symbolic link") from None
        raise
    try:
        return os.open(path.name or ".", _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def open_below(root: Path, parts: Sequence[str], limit: int = LARGEST_SUBMISSION) -> BinaryIO:
    """A regular file somewhere below a folder of ours. No step on the way may be a link, or lead out."""
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise FileMissingError("has a name that no file can have")
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            try:
                inner = os.open(part, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno in (*_NOT_THERE, errno.ELOOP):
                    raise FileMissingError("is not in a folder") from None
                raise  # a fault of ours
            os.close(folder)
            folder = inner
        return _checked(os.open(parts[-1], _FILE, dir_fd=folder), limit)
    except OSError as error:
        raise _fault(root.joinpath(*parts), error) from None
    finally:
        os.close(folder)


class TreeEntry(NamedTuple):
    """A file of any kind below a folder, or a folder that could not be listed completely."""

    parts: tuple[str, ...]  # its path from the root
    status: os.stat_result | None = None
    fault: str | None = None  # why there is no status, or a folder is not listed
    error: OSError | None = None  # the cause of the fault, unless it is a limit


def walk(root: Path, *inside: str, deepest: int = 20, most: int = 100_000) -> Iterator[TreeEntry]:
    """What is below a folder of an agent, `inside` a folder of ours, without following links at any step.

    Names are sorted, and files come before what is in the folders beside them. Folders more than `deepest` steps from
    the root are not listed, nor are more than `most` entries in all.
    """
    yield from _walk(root, None, inside, (), _WalkLimits(deepest, most))


@dataclass
class _WalkLimits:
    deepest: int
    remaining: int


def _walk(
    name: Path | str, parent: int | None, steps: Sequence[str], parts: tuple[str, ...], limits: _WalkLimits
) -> Iterator[TreeEntry]:
    """Open a folder in an open one, then those in `steps`, each in the one before; list the last."""
    try:
        folder = os.open(name, _LISTED, dir_fd=parent)
    except FileNotFoundError:  # the agent may still be running
        return
    except OSError as error:
        yield _unreadable(parts, error)
        return
    try:
        if steps:
            yield from _walk(steps[0], folder, steps[1:], (*parts, steps[0]), limits)
        else:
            yield from _listed(folder, parts, limits)
    finally:
        os.close(folder)


def _listed(folder: int, parts: tuple[str, ...], limits: _WalkLimits) -> Iterator[TreeEntry]:
    try:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in islice(listing, limits.remaining + 1))
    except OSError as error:
        yield _unreadable(parts, error)
        return
    is_whole = len(names) <= limits.remaining
    names = names[: limits.remaining]
    limits.remaining -= len(names)
    folders = []
    for name in names:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield _unreadable((*parts, name), error)
            continue
        if stat.S_ISDIR(status.st_mode):
            folders.append(name)
        else:
            yield TreeEntry((*parts, name), status)
    if not is_whole:
        yield TreeEntry(parts, fault="holds too many files")
    for name in folders:
        if len(parts) + 1 < limits.deepest:
            yield from _walk(name, folder, (), (*parts, name), limits)
        else:
            yield TreeEntry((*parts, name), fault="is nested too deeply")


def _unreadable(parts: tuple[str, ...], error: OSError) -> TreeEntry:
    return TreeEntry(parts, fault=f"cannot be read ({reason_of(error)})", error=error)


def kind_of(mode: int) -> str:
    """What something on disk is, in words, if it is not a regular file."""
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def _fault(path: Path, error: OSError) -> Exception:
    if error.errno in _NOT_THERE:
        return FileMissingError("does not exist")
    if error.errno == errno.ENAMETOOLONG:
        return FileMissingError("has a name that is too long")
    if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
        try:
            return FileMissingError(f"is {kind_of(path.lstat().st_mode)}, not a regular file")
        except OSError:
            return FileMissingError("is not a regular file")
    kind = FileForbiddenError if isinstance(error, PermissionError) else PrerequisiteError
    return kind(f"cannot read {path}: {reason_of(error)}")
