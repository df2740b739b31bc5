"""Tar and 7z archives. They can be read from front to back only, so they are unpacked once, as a whole.

They are unpacked into the scratch folder, on the same disk as the prepared files. Files are linked into place from
there, so their bytes are written once.
"""

import io
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import HeaderError, ReadError
from typing import Any, Self

from mlebench.engine.archives.member_checks import Member, MemberChecks, archive_errors, plain_name
from mlebench.engine.trees import COPY_BYTES, FINISHED, FolderTree, create
from mlebench.errors import PrerequisiteError

_SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
_FOLDER_MODE = 0o755
_ABOUT_THE_NEXT = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MOST_BYTES = 1 << 60
_MOST_HEADER_BYTES = 1 << 24  # of what stands before a member: a long name, times, a map of holes


def unpacked(archive: Path, folder: Path, label: str) -> FolderTree:
    """The files of a tar archive, however it is compressed, or of a 7z archive."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)  # left by a failed attempt
        unfinished.mkdir()
        with archive_errors(label):
            (_unpack_7z if _is_7z(archive) else _unpack_tar)(archive, unfinished, label)
        unfinished.rename(folder)
    return FolderTree(folder, label)


def member_names(archive: Path, label: str) -> list[str]:
    """The names of the files in such an archive, sorted; of a tar only the headers are looked at."""
    with archive_errors(label):
        if _is_7z(archive):
            with _opened_7z(archive, label) as opened:
                return sorted(plain_name(info.filename) for info in opened.list() if info.is_file)
        with tarfile.open(archive, tarinfo=_Header) as opened:
            names = sorted(plain_name(info.name) for info in opened if info.isreg())
            _read_to_the_end(opened)
            return names


def member_checksums(archive: Path, label: str) -> list[tuple[str, int, int]]:
    """Name, size and CRC of each file in a 7z archive. Nothing is unpacked."""
    if not _is_7z(archive):
        raise PrerequisiteError(f"{label} is not a 7z archive")
    with archive_errors(label), _opened_7z(archive, label) as opened:
        return [
            (plain_name(info.filename), info.uncompressed, info.crc32 or 0) for info in opened.list() if info.is_file
        ]


class _Header(tarfile.TarInfo):
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


def _read_to_the_end(opened: tarfile.TarFile) -> None:
    """After the last member come zeros and, in a compressed archive, the checksum of everything before.

    Without a checksum, a lost header looks like the end, so check that only zeros follow.
    """
    if not opened.getmembers():  # a file of zeros, as some programs leave where a download broke off
        raise ReadError("it is empty")
    has_checksum = not isinstance(opened.fileobj, io.BufferedReader)
    while opened.fileobj and (piece := opened.fileobj.read(COPY_BYTES)):
        if piece.strip(b"\0") and not has_checksum:
            raise ReadError("it continues after its end")


@contextmanager
def _opened_7z(archive: Path, label: str) -> Iterator[Any]:
    import py7zr
    from py7zr.exceptions import PasswordRequired

    try:
        with py7zr.SevenZipFile(archive) as opened:
            yield opened
    except (PrerequisiteError, OSError, MemoryError):
        raise
    except PasswordRequired as error:
        raise PrerequisiteError(f"{label} is encrypted; get the archive again") from error
    except Exception as error:  # py7zr does not handle all damage: it may raise anything
        raise PrerequisiteError(f"{label} cannot be read ({error}); get the archive again") from error


def _is_7z(archive: Path) -> bool:
    with archive.open("rb") as stream:
        return stream.read(len(_SEVEN_ZIP)) == _SEVEN_ZIP


def _unpack_tar(archive: Path, folder: Path, label: str) -> None:
    checks = MemberChecks(label, archive.stat().st_size)
    with tarfile.open(archive, tarinfo=_Header) as opened:
        for info in opened:
            name, size = plain_name(info.name), 0 if info.isdir() else info.size
            checks.check(Member(name, size, info.isdir(), not (info.isdir() or info.isreg())))
            if info.isreg():
                _check_by_library(info, folder)
                _extract(opened, info, folder / name)
        _read_to_the_end(opened)


def _check_by_library(info: tarfile.TarInfo, folder: Path) -> None:
    """Python's own filter for archives that are not trusted, where this Python has it; our checks are stricter."""
    if hasattr(tarfile, "data_filter"):
        tarfile.data_filter(info, str(folder))


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    left = info.size
    with create(str(path)) as target:
        source = archive.extractfile(info)
        while left and source and (piece := source.read(COPY_BYTES)):
            left -= target.write(piece)
    if left:
        raise EOFError(f"member {info.name} is cut off")


def _unpack_7z(archive: Path, folder: Path, label: str) -> None:
    with _opened_7z(archive, label) as opened:
        if opened.needs_password():
            raise PrerequisiteError(f"{label} is encrypted; get the archive again")
        checks = MemberChecks(label, archive.stat().st_size)
        members = opened.list()
        for info in members:
            special = info.is_symlink or info.is_directory == info.is_file
            checks.check(Member(plain_name(info.filename), info.uncompressed, info.is_directory, special))
        opened.extractall(folder)  # noqa: S202 its members have been looked over
    for name in sorted(info.filename for info in members if info.is_directory):
        (folder / name).chmod(_FOLDER_MODE)  # whatever the archive says: files are linked from it, then it is removed
    for info in members:
        path = folder / info.filename
        if info.is_file:
            if path.stat().st_size != info.uncompressed:
                raise EOFError(f"member {info.filename} is cut off")
            path.chmod(FINISHED)
