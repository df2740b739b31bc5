"""What was prepared, from what and by which versions: the record that lies beside prepared data.

It comes in two files. The head is small: whoever wants to know where data came from reads nothing else. The list has a
line for each file, of which there may be millions, sorted by name. The list is written first, so that no head is ever
there without it. The first schema had both in one file; it can still be read.
"""

import json
import os
import platform
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

from mlebench import __version__
from mlebench.data.faults import explained
from mlebench.data.identity import Files, content_identity
from mlebench.errors import PrerequisiteError
from mlebench.files import write_whole
from mlebench.paths import MANIFEST, MANIFEST_FILES, PRIVATE, PUBLIC
from mlebench.records import Record, now
from mlebench.registry import Competition

LINES = 10_000  # that are printed or parsed in one go


@dataclass(frozen=True, kw_only=True)
class Manifest(Record):
    """The head: everything but the list of files."""

    SCHEMA: ClassVar[int] = 2

    competition: str
    profile: str
    source: dict[str, Any]  # `kind` is twin, local, kaggle or unknown
    prepared_at: str
    versions: dict[str, str]
    files: int
    bytes: int
    competition_version: int | None = None  # older ones have none
    description: str = "unknown"  # `ours`, or Kaggle's `original`
    code: str | None = None  # of the competition that made it, as `changes.code_hash` has it; older ones have none
    identity: str | None = None  # what `identity.content_identity` makes of the files; older ones have none

    @classmethod
    def from_dict(cls, data: Any, where: Path | str = "a manifest") -> Self:
        match data:
            case {"source": {"kind": str()}, "files": dict(files)}:
                versions = data.get("versions", {})
                counted = {"files": len(files), "bytes": sum(facts["size"] for facts in files.values())}
                data = data | counted | {"mlebench": versions.get("mlebench", "unknown")}
            case {"source": {"kind": str()}, "files": int(), "bytes": int(), "versions": dict()}:
                pass
            case {"schema": int(schema)} if schema > cls.SCHEMA:
                pass
            case _:
                raise PrerequisiteError(f"{where} is not a manifest")
        return super().from_dict(data, where)


def write_manifest(
    competition: Competition,
    folder: Path,
    source: dict[str, Any],
    files: Files,
    description: str = "unknown",
    code: str | None = None,
) -> None:
    head = Manifest(
        competition=competition.id,
        profile=competition.profile,
        competition_version=competition.version,
        source=source,
        prepared_at=now(),
        versions=library_versions(),
        files=len(files),
        bytes=sum(facts["size"] for facts in files.values()),
        description=description,
        code=code,
        identity=content_identity(folder, files),
    )
    _write(folder, head, files)


def rewrite_manifest(prepared: Path, head: Manifest, files: Files) -> None:
    """The same manifest, with more known of its files; one of the first schema becomes one of ours."""
    _write(prepared, head.changed(identity=head.identity or content_identity(prepared, files)), files)


def read_head(path: Path) -> Manifest | None:
    """What was recorded there; None when that is nothing, or nothing that this program writes."""
    data = _load(path)
    try:
        return Manifest.from_dict(data, path)
    except (PrerequisiteError, TypeError, KeyError):
        if isinstance(data, dict) and isinstance(data.get("schema"), int) and data["schema"] > Manifest.SCHEMA:
            raise  # says to update this program
        return None


def read_files(prepared: Path) -> Files | None:
    """The list of files; None when there is none, or it cannot be understood."""
    path = prepared / MANIFEST_FILES
    with explained(prepared, prepared):
        if not path.is_file():
            manifest = _load(prepared / MANIFEST)
            files = manifest.get("files") if isinstance(manifest, dict) else None
        else:
            try:
                files = dict(iterate_files(path))
            except ValueError:
                return None
    if not isinstance(files, dict):
        return None
    well = all(isinstance(facts, dict) and isinstance(facts.get("size"), int) for facts in files.values())
    return files if well else None


def iterate_files(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and facts of each file, sorted by name, without holding the list in memory."""
    with path.open(encoding="utf-8") as stream:
        while lines := list(islice(stream, LINES)):
            for entry in json.loads(f"[{','.join(lines)}]"):
                match entry:
                    case [str(name), dict(facts)]:
                        yield name, facts
                    case _:
                        raise ValueError(f"{path}: {entry!r} is not a file's name and what is known of it")


def _load(path: Path) -> Any:
    """The JSON in a file; None when there is no such file, or no JSON in it."""
    with explained(path.parent, path.parent):
        try:
            return json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
            return None


@cache
def library_versions() -> dict[str, str]:
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("pandas", "numpy", "pyarrow")}
    return {"python": platform.python_version(), "mlebench": __version__, **libraries}


def _write(folder: Path, head: Manifest, files: Files) -> None:
    write_whole(folder / MANIFEST_FILES, _lines(files))
    head.write(folder / MANIFEST)


def _lines(files: Files) -> Iterator[str]:
    """Some are printed in two goes and taken apart where no text can be: half the time that one by one takes."""
    names = iter(sorted(files))
    while some := list(islice(names, LINES)):
        keys = json.dumps(some, separators=(",\n", ": "))[1:-1].split(",\n")
        facts = json.dumps([files[name] for name in some])[2:-2].split("}, {")
        yield from (f"[{key}, {{{fact}}}]\n" for key, fact in zip(keys, facts, strict=True))


def files_in(prepared: Path) -> Files:
    """The files below public/ and private/, with size and time; one that cannot be read has a `fault`."""
    found: Files = {}
    for side in (PUBLIC, PRIVATE):
        for folder, _, names in os.walk(prepared / side, onerror=_unless_missing):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 there may be millions
                found[path[len(str(prepared)) + 1 :]] = _facts(path)
    return found


def _facts(path: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
    except OSError as error:  # mostly a symbolic link that leads nowhere
        return {"size": 0, "mtime_ns": 0, "fault": f"cannot be read ({error.strerror})"}
    facts = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
    return facts if stat.S_ISREG(status.st_mode) else facts | {"fault": "is not a file"}


def _unless_missing(error: OSError) -> None:
    """A folder that is closed to us does not pass for an empty one."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
