"""Records on disk: small, typed, versioned JSON objects, written completely or not at all.

A record is a frozen struct. Its JSON opens with `schema` and `mlebench`, the version that wrote it. Readers ignore
fields that they do not know and accept older schemas: a field that was added later has a default. A newer schema is
refused. A field that is missing or has the wrong type is named, with the file.
"""

import json
import os
import re
import stat
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import msgspec
from msgspec import Meta

from mlebench import __version__
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer, write_whole
from mlebench.core.untrusted import plain

# A network disk may show a replaced file with the size of the old one, so cut short: sshfs with its default cache does.
# The next look is usually right. A file that really is damaged takes this long to be reported.
READ_AGAIN = (0.02, 0.2, 0.5)  # seconds
LONGEST_FAULT = 300  # characters

# Numbers that any arithmetic can take: a record may be damaged, or a stranger's.
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Integer = Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Time = Annotated[str, Meta(min_length=10, max_length=40)]  # ISO 8601; see `seconds_of`
Text = str
Name = Annotated[str, Meta(min_length=1, max_length=255)]

Kind = TypeVar("Kind", bound="Record")
_PATH = re.compile(r"(?P<fault>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_TYPES = {
    "object": "an object", "array": "a list", "str": "text", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "null",
}  # fmt: skip


def now() -> str:
    """The current time, with its zone, in the form that records use."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def seconds_of(time: str | None) -> float | None:
    """A record's time, in seconds since the epoch; None if there is none, or it is not a time."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else None
    except (ValueError, OverflowError):
        return None


class DamagedRecordError(PrerequisiteError):
    """A record cannot be used: it is not JSON, or lacks a field, or a field has the wrong type."""


class NotJsonError(DamagedRecordError):
    """A file that should hold a record does not hold JSON."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    mlebench: str = __version__  # the version that wrote it

    @classmethod
    def upgrade(cls, data: dict[str, Any]) -> dict[str, Any]:
        """The JSON of an older version, in today's form."""
        return data

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values, written by this version."""
        return msgspec.structs.replace(self, mlebench=__version__, **values)

    def to_dict(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)

    def to_text(self) -> str:
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"


def write(path: Path, record: Record) -> None:
    write_whole(path, record.to_text())


def read(path: Path, kind: type[Kind]) -> Kind:
    """The record in a file; DamagedRecordError if it is damaged, PrerequisiteError if it is missing or newer."""
    for pause in READ_AGAIN:
        try:
            return _read_once(path, kind)
        except NotJsonError:
            time.sleep(pause)
    return _read_once(path, kind)


def content_of(path: str | Path) -> bytes:
    """The content of a regular file; there may be thousands, so a text will do for the path."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would never end
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DamagedRecordError(f"{path} is not a regular file")
        return file.readall()


def _read_once(path: Path, kind: type[Kind]) -> Kind:
    try:
        return parse(content_of(path), kind, path)
    except FileNotFoundError:
        raise PrerequisiteError(f"there is no {path}") from None


def parse(content: bytes, kind: type[Kind], source: Path | str) -> Kind:
    """The record in a file's content; `source` names it in errors."""
    try:
        record = msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _parse_slowly(content, kind, source)
    _refuse_newer(record.schema, record.mlebench, kind, source)
    return record


def _parse_slowly(content: bytes, kind: type[Kind], source: Path | str) -> Kind:
    """The record in content that msgspec refuses: an older form, or one with names of files that are not Unicode."""
    try:
        data = json.loads(content)
        data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        if is_lfs_pointer(content):
            raise PrerequisiteError(f"{source} {LFS_POINTER}") from None
        raise NotJsonError(f"{source} is not JSON: {error}") from None
    return from_dict(data, kind, source)


def from_dict(data: Any, kind: type[Kind], source: Path | str) -> Kind:
    """The record in a JSON value."""
    if not isinstance(data, dict):
        raise DamagedRecordError(f"{source} is not a JSON object")
    _refuse_newer(data.get("schema"), data.get("mlebench"), kind, source)
    try:
        return msgspec.convert(kind.upgrade(data), kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DamagedRecordError(f"{source}: {fault_of(error)}") from None


@cache
def _schema(kind: type[Record]) -> int:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == "schema")


def _refuse_newer(schema: Any, version: Any, kind: type[Record], source: Path | str) -> None:
    if type(schema) is int and schema > _schema(kind):
        raise PrerequisiteError(
            f"{source} was written by mlebench {plain(str(version))[:40]}, which is newer: update mlebench"
        )


def fault_of(error: Exception) -> str:
    """What msgspec found wrong, for readers: the field and the fault."""
    match = _PATH.fullmatch(str(error))
    fault, path = (match["fault"], match["path"]) if match else (str(error), None)
    fault = fault[:1].lower() + fault[1:]
    fault = re.sub(r"^object missing required field `(\w+)`", r"lacks the field `\1`", fault)
    fault = re.sub(r"^expected `(.+?)`, got `(.+?)`", _expectation, fault)
    fault = re.sub(r"^expected `(.+?)`", _expectation, fault)
    field = f"`{path.lstrip('.')}` " if path else ""
    return plain(f"{field}{fault}")[:LONGEST_FAULT]


def _expectation(match: re.Match[str]) -> str:
    wanted = " or ".join(_TYPES.get(name, name) for name in match[1].split(" | "))
    got = match[2] if match.lastindex == 2 else None
    return f"must be {wanted}{f', not {_TYPES.get(got, got)}' if got else ''}"
