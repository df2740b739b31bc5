"""Reproducible archives: sorted members, one time, no owner."""

import gzip
import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO, Literal, cast

from mlebench.engine.byte_chunks import ByteChunks
from mlebench.engine.progress import Stage
from mlebench.engine.raw_streams import reporting
from mlebench.engine.tables import Quoting, Table, Writable
from mlebench.engine.trees import COPY_BYTES, TreeFile

PackFormat = Literal["zip", "7z", "tar", "tar.gz"]
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # every member's
_TIME = 315_532_800  # the same, in seconds since the epoch
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


@dataclass
class Pack:
    """What goes into an archive, under which names."""

    members: Mapping[str, "Table | TreeFile | ByteChunks | bytes | Pack"]
    format: PackFormat
    deflate: bool
    quoting: Quoting
    spooled: dict[str, Path] = field(default_factory=dict)  # tables, written out to be packed

    def contents(self) -> Iterator[Table | TreeFile | ByteChunks | bytes]:
        """Yield what each member holds, those of archives inside among them."""
        for content in self.members.values():
            if isinstance(content, Pack):
                yield from content.contents()
            else:
                yield content


def pack_format_of(name: str) -> PackFormat:
    if name.endswith(".tar"):
        return "tar"
    if name.endswith(".7z"):
        return "7z"
    return "tar.gz" if name.endswith((".tar.gz", ".tgz")) else "zip"


def write_pack(stream: Writable, pack: Pack, scratch: Path, stage: Stage) -> None:
    """An archive, written from front to back; the stage advances as raw files are packed."""
    if pack.format == "zip":
        _write_zip(stream, pack, scratch, stage)
    elif pack.format == "7z":
        _write_7z(stream, pack, scratch, stage)
    elif pack.format == "tar":
        _write_tar(stream, pack, scratch, stage)
    else:
        with gzip.GzipFile("", "wb", fileobj=cast(BinaryIO, stream), mtime=0) as compressed:
            _write_tar(compressed, pack, scratch, stage)


def _write_zip(stream: Writable, pack: Pack, scratch: Path, stage: Stage) -> None:
    """Sizes and checksums follow each member."""
    method = zipfile.ZIP_DEFLATED if pack.deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(cast(BinaryIO, stream), "w", method) as archive:
        for member in sorted(pack.members):
            info = zipfile.ZipInfo(member, ZIP_TIME)
            info.compress_type = zipfile.ZIP_STORED if info.is_dir() else method
            info.external_attr = (0o40755 if info.is_dir() else 0o644) << 16
            opened = _open_member(pack, member, scratch, stage)
            with opened as source, archive.open(info, "w", force_zip64=True) as target:
                while piece := source.read(COPY_BYTES):
                    target.write(piece)


def _write_tar(stream: Any, pack: Pack, scratch: Path, stage: Stage) -> None:
    """Sizes precede each member. Fields that are not set, such as time and owner, are always the same."""
    with tarfile.TarFile(mode="w", fileobj=stream, copybufsize=COPY_BYTES) as archive:
        for member in sorted(pack.members):
            info = tarfile.TarInfo(member)
            with _open_member(pack, member, scratch, stage) as source:
                info.size = _member_size(pack, member, source)
                archive.addfile(info, source)
            archive.getmembers().clear()  # otherwise tarfile remembers every member


def _write_7z(stream: Writable, pack: Pack, scratch: Path, stage: Stage) -> None:
    """Made in the scratch folder and then copied, since its header is known last."""
    with TemporaryDirectory(dir=scratch) as folder:
        archive = Path(folder, "archive")
        opened = partial(_open_member, pack, scratch=scratch, stage=stage)
        members = ((member, partial(opened, member)) for member in sorted(pack.members))
        write_seven_zip(archive, members, Path(folder), deflate=pack.deflate)
        with archive.open("rb") as source:
            while piece := source.read(COPY_BYTES):
                stream.write(piece)


def write_seven_zip(
    archive: Path, members: Iterable[tuple[str, Callable[[], BinaryIO]]], scratch: Path, *, deflate: bool
) -> None:
    """A 7z archive of members in this order, each with how to open it; a name that ends with a slash is a folder.

    The same members always give the same bytes. py7zr takes times and modes from files on disk, so each member is in
    the scratch folder while it is packed.
    """
    import py7zr

    # Deflate: py7zr's default takes fifty times as long to save another fifth.
    method = py7zr.FILTER_DEFLATE if deflate else py7zr.FILTER_COPY
    with py7zr.SevenZipFile(archive, "w", filters=[{"id": method}]) as opened:
        opened.set_encoded_header_mode(False)  # packing the list of members takes longer than packing small members
        for name, open_member in members:
            member = scratch / "member"
            if name.endswith("/"):
                member.mkdir(_FOLDER_MODE)
            else:
                with open_member() as source, member.open("xb") as target:
                    shutil.copyfileobj(source, target, COPY_BYTES)
            member.chmod(_FOLDER_MODE if name.endswith("/") else _FILE_MODE)
            os.utime(member, (_TIME, _TIME))
            opened.write(member, name.rstrip("/"))
            member.rmdir() if name.endswith("/") else member.unlink()


def _open_member(pack: Pack, member: str, scratch: Path, stage: Stage) -> BinaryIO:
    """Open a member; an archive inside is first written to the scratch folder, where it is until it is closed."""
    content = pack.spooled.get(member) or pack.members[member]
    if isinstance(content, Pack):
        with ExitStack() as stack:  # closes it only if it cannot be written
            archive = cast(BinaryIO, stack.enter_context(TemporaryFile(dir=scratch)))
            write_pack(archive, content, scratch, stage)
            archive.seek(0)
            stack.pop_all()
        return archive
    if isinstance(content, bytes):
        return io.BytesIO(content)
    if isinstance(content, Path):
        return content.open("rb")
    opened = cast(TreeFile, content).open()
    return reporting(opened, stage) if isinstance(content, TreeFile) else opened


def _member_size(pack: Pack, member: str, opened: BinaryIO) -> int:
    content = pack.spooled.get(member) or pack.members[member]
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, Path | Pack):
        return os.fstat(opened.fileno()).st_size
    return cast(TreeFile, content).size
