"""Tar and 7z archives. They can only be read from front to back, so they are unpacked once, in full.

They are unpacked into the scratch folder, on the same disk as the prepared files. Files are linked into place from
there, so their bytes are written once.
"""

import io
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import HeaderError, ReadError
from typing import NamedTuple, Self

from mlebench.engine.archives.member_checks import ArchiveMember, MemberChecks, archive_errors, plain_name
from mlebench.engine.archives.read_7z import is_7z, opened_7z, unpack_7z
from mlebench.engine.progress import SILENT, Progress, Stage
from mlebench.engine.trees import COPY_BYTES, FolderTree, create

_ABOUT_THE_NEXT = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MOST_BYTES = 1 << 60
_MOST_HEADER_BYTES = 1 << 24  # of what precedes a member: a long name, times, a map of holes


def unpacked(archive: Path, folder: Path, label: str, progress: Progress = SILENT) -> FolderTree:
    """The files of a tar archive, however it is compressed, or of a 7z archive."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)  # left by a failed attempt
        unfinished.mkdir()
        with archive_errors(label):
            (unpack_7z if is_7z(archive) else _unpack_tar)(archive, unfinished, label, progress)
        unfinished.rename(folder)
    return FolderTree(folder, label)


def lists_its_files(archive: Path) -> bool:
    """Whether an archive's contents can be listed quickly. A compressed tar has to be unpacked for that."""
    if is_7z(archive):
        return True
    try:
        tarfile.open(archive, "r:").close()
    except tarfile.TarError:
        return False
    return True


class PackedFile(NamedTuple):
    """A file in an archive; only a 7z archive gives its checksum."""

    name: str
    size: int
    crc32: int = 0


def packed_files(archive: Path, label: str, progress: Progress = SILENT) -> list[PackedFile]:
    """The files in such an archive. Nothing is unpacked; a compressed tar is read through, for its headers."""
    with archive_errors(label):
        if is_7z(archive):
            with opened_7z(archive, label) as opened:
                files = [info for info in opened.list() if info.is_file]
                return [PackedFile(plain_name(info.filename), info.uncompressed, info.crc32 or 0) for info in files]
        with _opened_tar(archive, progress.stage("reading", archive.stat().st_size)) as (opened, report):
            files = []
            for info in opened:
                if info.isreg():
                    files.append(PackedFile(plain_name(info.name), info.size))
                report()
            return files


class _TarHeader(tarfile.TarInfo):
    """A member's header. Python takes a damaged or missing one for the end of the archive; here it is damage."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            info = super().frombuf(buf, encoding, errors)
        except HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):  # a block of zeros is the end
                raise
            raise ReadError(f"a damaged header: {error}") from error
        about_the_next = info.type in _ABOUT_THE_NEXT and info.size > _MOST_HEADER_BYTES
        if info.size < 0 or about_the_next:  # Python would go back, or read it all into memory
            raise ReadError("a header with an impossible size")
        return info

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            info = super().fromtarfile(tarfile)
        except (ValueError, LookupError, RecursionError) as error:
            raise ReadError(f"a damaged header: {error}") from error
        if not 0 <= info.size <= _MOST_BYTES:
            raise ReadError("a header with an impossible size")
        return info


@contextmanager
def _opened_tar(archive: Path, stage: Stage) -> Iterator[tuple[tarfile.TarFile, Callable[[], None]]]:
    """The archive, and a function that reports how much of it has been read; in the end all of it has."""
    with archive.open("rb") as packed, tarfile.open(fileobj=packed, tarinfo=_TarHeader) as opened:

        def report() -> None:
            stage.reach(packed.tell())

        yield opened, report
        _read_to_the_end(opened, report)
    stage.finish()


def _read_to_the_end(opened: tarfile.TarFile, report: Callable[[], None]) -> None:
    """After the last member come zeros and, in a compressed archive, the checksum of everything before.

    Without a checksum, a lost header looks like the end, so check that only zeros follow.
    """
    if not opened.getmembers():  # a file of zeros, as some programs leave after an aborted download
        raise ReadError("it is empty")
    has_checksum = not isinstance(opened.fileobj, io.BufferedReader)
    while opened.fileobj and (piece := opened.fileobj.read(COPY_BYTES)):
        if piece.strip(b"\0") and not has_checksum:
            raise ReadError("it continues after its end")
        report()


def _unpack_tar(archive: Path, folder: Path, label: str, progress: Progress) -> None:
    size = archive.stat().st_size
    checks = MemberChecks(label, size)
    with _opened_tar(archive, progress.stage("unpacking", size)) as (opened, report):
        for info in opened:
            name, size = plain_name(info.name), 0 if info.isdir() else info.size
            checks.check(ArchiveMember(name, size, info.isdir(), not (info.isdir() or info.isreg())))
            if info.isreg():
                _check_by_library(info, folder)
                _extract(opened, info, folder / name, report)


def _check_by_library(info: tarfile.TarInfo, folder: Path) -> None:
    """Python's own filter for untrusted archives, where this Python has it; our checks are stricter."""
    if hasattr(tarfile, "data_filter"):
        tarfile.data_filter(info, str(folder))


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo, path: Path, report: Callable[[], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    remaining = info.size
    with create(str(path)) as target:
        source = archive.extractfile(info)
        while remaining and source and (piece := source.read(COPY_BYTES)):
            remaining -= target.write(piece)
            report()
    if remaining:
        raise EOFError(f"member {info.name} is cut off")
