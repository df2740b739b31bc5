"""What was prepared, from what and by which versions: the record that lies beside prepared data."""

import json
import os
import platform
import stat
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from mlebench.paths import MANIFEST, PRIVATE, PUBLIC, write_whole
from mlebench.registry import Competition

Files = dict[str, dict[str, Any]]  # name under the prepared folder: size, and md5, crc32 or mtime_ns


def write_manifest(competition: Competition, folder: Path, source: dict[str, Any], files: Files) -> None:
    manifest = {
        "competition": competition.id,
        "profile": competition.profile,
        "source": source,
        "prepared_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
    }
    _write(folder / MANIFEST, manifest, files)


def load_manifest(path: Path) -> dict[str, Any] | None:
    """What was recorded there; None when that is nothing, or nothing that this program writes."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    match manifest:
        case {"source": {"kind": str()}, "files": dict(files)}:
            well = all(isinstance(facts, dict) and isinstance(facts.get("size"), int) for facts in files.values())
            return manifest if well else None
    return None


@cache
def _versions() -> dict[str, str]:
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("mlebench", "pandas", "numpy", "pyarrow")}
    return {"python": platform.python_version(), **libraries}


def rewrite_manifest(competition: Competition, manifest: dict[str, Any]) -> None:
    """The same manifest, with more known of its files."""
    head = {key: value for key, value in manifest.items() if key != "files"}
    _write(competition.paths.manifest, head, manifest["files"])


def _write(path: Path, head: dict[str, Any], files: Files) -> None:
    opening = json.dumps(head, indent=1).removesuffix("\n}")
    # A line for each file, of which there may be millions: printed in two goes and taken apart where no text can be.
    names = sorted(files)
    keys = json.dumps(names, separators=(",\n", ": "))[1:-1].split(",\n")
    facts = json.dumps([files[name] for name in names])[2:-2].split("}, {")
    lines = ",\n".join(f"  {key}: {{{fact}}}" for key, fact in zip(keys, facts, strict=True))
    write_whole(path, f'{opening},\n "files": {{\n{lines}\n }}\n}}\n')


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
