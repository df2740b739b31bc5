"""What a prepared folder holds, file by file, in a form that can be kept and compared.

A file that is a raw file in another place is named by it (`raw: train/1.jpg`), so that the figures do not depend on
how an image library compresses; any other file is its md5, of a parquet file that of its content; a zip is the same for
each of its members.
"""

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

from mlebench.kit.parquet import content_hash

NOT_DATA = ("public/description.md", "manifest.json")


def raw_index(raw: Path) -> dict[str, str]:
    """md5 → name, for every raw file and every member of raw zips, at any depth."""
    index: dict[str, str] = {}
    for name, content in sorted(_files(raw)):
        _add(index, name, content)
    return index


def fingerprint(prepared: Path, index: dict[str, str]) -> dict[str, Any]:
    return {name: _print_of(content, index) for name, content in sorted(_files(prepared)) if name not in NOT_DATA}


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]


def _add(index: dict[str, str], name: str, content: bytes) -> None:
    index.setdefault(_md5(content), name)
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in sorted(info.filename for info in archive.infolist() if not info.is_dir()):
                _add(index, f"{name}!{member}", archive.read(member))


def _print_of(content: bytes, index: dict[str, str]) -> Any:
    md5 = _md5(content)
    if md5 in index:
        return f"raw: {index[md5]}"
    if content.startswith(b"PAR1"):
        return f"parquet: {content_hash(io.BytesIO(content))}"
    if not content.startswith(b"PK\x03\x04"):
        return md5
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: _print_of(archive.read(name), index) for name in sorted(archive.namelist())}


def _md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()
