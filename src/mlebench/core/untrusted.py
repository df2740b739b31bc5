"""What an agent leaves behind is hostile: links are not followed, and only regular files of bounded size are read.

A submission that is a link to the answers, an endless pipe or a device is distinguished from one that is missing.
An agent's text reaches a terminal or a page only through `plain`, and its JSON is parsed only by `parse_json`.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of

LARGEST_SUBMISSION = 8 << 30  # bytes; the largest genuine submission is well below a tenth of it

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
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(\x07|\x1b\\)?|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# They reverse the direction of text, end lines invisibly, or are not characters at all.
_DECEPTIVE = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
# Possessive, and to the end of the text if the string does not end: it is never tried twice.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def plain(text: str) -> str:
    """What an agent wrote, without escape codes and control characters; deceptive characters are spelled out."""
    return _DECEPTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", _ESCAPES.sub("", text))


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
