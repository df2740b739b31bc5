"""Reproducible archives: sorted members, one time, no owner."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal, cast

from mlebench.engine.progress import Stage
from mlebench.engine.reading import reporting
from mlebench.engine.tables import Quoting, Table, Writable
from mlebench.engine.texts import Pieces
from mlebench.engine.trees import COPY_BYTES, TreeFile

PackFormat = Literal["zip", "7z", "tar", "tar.gz"]
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # every member's


@dataclass
class Pack:
    """What goes into an archive, under which names."""

    members: Mapping[str, Table | TreeFile | Pieces | bytes]
    format: PackFormat
    deflate: bool
    quoting: Quoting
    spooled: dict[str, Path] = field(default_factory=dict)  # tables, written out to be packed


def pack_format_of(name: str) -> PackFormat:
    if name.endswith(".tar"):
        return "tar"
    if name.endswith(".7z"):
        return "7z"
    return "tar.gz" if name.endswith((".tar.gz", ".tgz")) else "zip"


def write_pack(stream: Writable, pack: Pack, scratch: Path, stage: Stage) -> None:
    """An archive, written from front to back; the stage advances as raw files are packed."""
    if pack.format == "zip":
        _write_zip(stream, pack, stage)
    elif pack.format == "7z":
        _write_7z(stream, pack, scratch, stage)
    elif pack.format == "tar":
        _write_tar(stream, pack, stage)
    else:
        with gzip.GzipFile("", "wb", fileobj=cast(BinaryIO, stream), mtime=0) as compressed:
            _write_tar(compressed, pack, stage)


def _write_zip(stream: Writable, pack: Pack, stage: Stage) -> None:
    """Sizes and checksums follow each member."""
    method = zipfile.ZIP_DEFLATED if pack.deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(cast(BinaryIO, stream), "w", method) as archive:
        for member in sorted(pack.members):
            info = zipfile.ZipInfo(member, ZIP_TIME)
            info.compress_type = zipfile.ZIP_STORED if info.is_dir() else method
            info.external_attr = (0o40755 if info.is_dir() else 0o644) << 16
            with archive.open(info, "w", force_zip64=True) as target, _open_member(pack, member, stage) as source:
                while piece := source.read(COPY_BYTES):
                    target.write(piece)


def _write_tar(stream: Any, pack: Pack, stage: Stage) -> None:
    """Sizes precede each member. Fields that are not set, such as time and owner, are always the same."""
    with tarfile.TarFile(mode="w", fileobj=stream, copybufsize=COPY_BYTES) as archive:
        for member in sorted(pack.members):
            info = tarfile.TarInfo(member)
            info.size = _member_size(pack, member)
            with _open_member(pack, member, stage) as source:
                archive.addfile(info, source)
            archive.getmembers().clear()  # otherwise tarfile remembers every member


def _write_7z(stream: Writable, pack: Pack, scratch: Path, stage: Stage) -> None:
    """Made in the scratch folder and then copied, since its header is known last."""
    from mlebench.engine.archives.write_7z import write_seven_zip

    with TemporaryDirectory(dir=scratch) as folder:
        archive = Path(folder, "archive")
        members = ((member, lambda member=member: _open_member(pack, member, stage)) for member in sorted(pack.members))
        write_seven_zip(archive, members, Path(folder), deflate=pack.deflate)
        with archive.open("rb") as source:
            while piece := source.read(COPY_BYTES):
                stream.write(piece)


def _open_member(pack: Pack, member: str, stage: Stage) -> BinaryIO:
    content = pack.spooled.get(member) or pack.members[member]
    if isinstance(content, bytes):
        return io.BytesIO(content)
    if isinstance(content, Path):
        return content.open("rb")
    opened = cast(TreeFile, content).open()
    return reporting(opened, stage) if isinstance(content, TreeFile) else opened


def _member_size(pack: Pack, member: str) -> int:
    content = pack.spooled.get(member) or pack.members[member]
    if isinstance(content, bytes):
        return len(content)
    return content.stat().st_size if isinstance(content, Path) else cast(TreeFile, content).size
