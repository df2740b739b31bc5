"""Records on disk: small, typed, versioned JSON objects, written completely or not at all.

A record is a frozen dataclass. Its JSON opens with `schema` and `mlebench`, the version that wrote it. Readers accept
older schemas: a field that was added later has a default. A newer one is refused, with what to do about it.
"""

import json
import time
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from mlebench import __version__
from mlebench.errors import PrerequisiteError
from mlebench.files import LFS_POINTER, is_lfs_pointer, write_whole

# A network disk may show a replaced file with the size of the old one, so cut short: sshfs with its default cache does.
# The next look is usually right. A file that really is damaged takes this long to be reported.
READ_AGAIN = (0.02, 0.2, 0.5)  # seconds


def now() -> str:
    """The current time, with its zone, in the form that records use."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class NotJsonError(PrerequisiteError):
    """A file that should hold a record does not hold JSON."""


@cache
def _names(kind: "type[Record]") -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind) if item.init)


@dataclass(frozen=True, kw_only=True)
class Record:
    SCHEMA: ClassVar[int] = 1

    mlebench: str = field(default=__version__)

    def to_dict(self) -> dict[str, Any]:
        return {"schema": self.SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Any, where: Path | str = "a record") -> Self:
        """The record in a JSON value; fields that this version does not know are dropped."""
        if not isinstance(data, dict):
            raise PrerequisiteError(f"{where} is not a JSON object")
        if isinstance(schema := data.get("schema"), int) and schema > cls.SCHEMA:
            raise PrerequisiteError(
                f"{where} was written by mlebench {data.get('mlebench')}, which is newer than this one: update mlebench"
            )
        try:
            return cls(**{name: data[name] for name in _names(cls) if name in data})
        except TypeError as error:
            raise PrerequisiteError(f"{where} lacks a field: {error}") from None

    @classmethod
    def read(cls, path: Path) -> Self:
        for pause in READ_AGAIN:
            try:
                return cls._read_once(path)
            except NotJsonError:
                time.sleep(pause)
        return cls._read_once(path)

    @classmethod
    def _read_once(cls, path: Path) -> Self:
        try:
            return cls.parse(path.read_bytes(), path)
        except FileNotFoundError:
            raise PrerequisiteError(f"there is no {path}") from None

    @classmethod
    def parse(cls, content: bytes, where: Path | str) -> Self:
        """The record in a file's content."""
        try:
            return cls.from_dict(json.loads(content), where)
        except (ValueError, RecursionError) as error:
            if is_lfs_pointer(content):
                raise PrerequisiteError(f"{where} {LFS_POINTER}") from None
            raise NotJsonError(f"{where} is not JSON: {error}") from None

    def write(self, path: Path) -> None:
        write_whole(path, self.to_text())

    def to_text(self) -> str:
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    def changed(self, **values: Any) -> Self:
        """The same record with other values, written by this version."""
        return replace(self, mlebench=__version__, **values)
