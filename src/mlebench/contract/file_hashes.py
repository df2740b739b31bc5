"""What a prepared folder holds, file by file, in a form that can be stored and compared.

A file that is just a raw file in another place is recorded by its raw name (`raw: train/1.jpg`), so that the figures do
not depend on how an image library compresses. Any other file is recorded by its md5, a parquet file by that of its
content; a zip, tar or 7z has such a record for each of its members.
"""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import py7zr

from mlebench.core.paths import DESCRIPTION, MANIFEST, MANIFEST_FILES, PUBLIC
from mlebench.engine.parquet import content_hash

NOT_DATA = (f"{PUBLIC}/{DESCRIPTION}", MANIFEST, MANIFEST_FILES)


def raw_index(raw: Path) -> dict[str, str]:
    """md5 → name, for every raw file and every member of raw archives, at any depth."""
    index: dict[str, str] = {}
    for name, content in sorted(_files(raw)):
        _add(index, name, content)
    return index


def file_hashes(prepared: Path, index: dict[str, str]) -> dict[str, Any]:
    return {name: _hash_of(content, index) for name, content in sorted(_files(prepared)) if name not in NOT_DATA}


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]


def _add(index: dict[str, str], name: str, content: bytes) -> None:
    index.setdefault(_md5(content), name)
    if name.endswith((".zip", ".tar", ".tar.gz", ".tgz", ".7z")):
        for member, inner in sorted((members_of(content) or {}).items()):
            if not member.endswith("/"):
                _add(index, f"{name}!{member}", inner)


def _hash_of(content: bytes, index: dict[str, str]) -> Any:
    md5 = _md5(content)
    if md5 in index:
        return f"raw: {index[md5]}"
    if content.startswith(b"PAR1"):
        return f"parquet: {content_hash(io.BytesIO(content))}"
    members = members_of(content)
    return md5 if members is None else {name: _hash_of(members[name], index) for name in sorted(members)}


def members_of(content: bytes) -> dict[str, bytes] | None:
    """What an archive holds, whatever its own name; names of folders end with a slash. None: not an archive."""
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    if content.startswith(b"\x1f\x8b") or content[257:262] == b"ustar":
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                return {f"{info.name}/" if info.isdir() else info.name: _read(archive, info) for info in archive}
        except tarfile.ReadError:  # something else that is compressed
            return None
    return _members_of_7z(content) if content.startswith(b"7z\xbc\xaf\x27\x1c") else None


def _members_of_7z(content: bytes) -> dict[str, bytes]:
    with TemporaryDirectory() as folder, py7zr.SevenZipFile(io.BytesIO(content)) as archive:
        entries = archive.list()
        archive.extractall(folder)  # noqa: S202 py7zr refuses names that lead out of the folder
        # The reference names a folder by its whole path on the host: only the last part of it means anything.
        folders = {f"{PurePosixPath(entry.filename).name}/": b"" for entry in entries if entry.is_directory}
        files = [entry.filename for entry in entries if not entry.is_directory]
        return folders | {name: Path(folder, name).read_bytes() for name in files}


def _read(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(info)
    return stream.read() if stream else b""


def _md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()
