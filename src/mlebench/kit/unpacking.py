"""Tar and 7z archives. They can be read from front to back only, so they are unpacked once, as a whole.

They are unpacked into the scratch folder, which lies on the disk that prepared files go to: from there files are linked
to their places, so their bytes are written once.
"""

import tarfile
from pathlib import Path, PurePosixPath
from tarfile import HeaderError, ReadError
from typing import Self

from mlebench.errors import PrerequisiteError
from mlebench.kit.inspection import Inspection, Member, archive_errors
from mlebench.kit.seven_zip import library
from mlebench.kit.trees import COPY_BYTES, FINISHED, FolderTree, create

_SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
_END = tarfile.EOFHeaderError  # pyright: ignore[reportAttributeAccessIssue] its stubs do not name it
_FOLDER_MODE = 0o755


def unpacked(archive: Path, folder: Path, label: str) -> FolderTree:
    """The files of a tar archive, however it is compressed, or of a 7z archive."""
    if not folder.exists():
        folder.mkdir()
        with archive_errors(label):
            (_unpack_7z if _is_7z(archive) else _unpack_tar)(archive, folder, label)
    tree = FolderTree(folder)
    tree.label = label
    return tree


def member_names(archive: Path, label: str) -> list[str]:
    """The names of the files in such an archive, sorted; of a tar only the headers are looked at."""
    with archive_errors(label):
        if _is_7z(archive):
            return sorted(_members_of_7z(archive, label))
        with tarfile.open(archive, tarinfo=_Header) as opened:
            return sorted(_plain(info.name) for info in opened if info.isreg())


class _Header(tarfile.TarInfo):
    """What stands before a member. To Python a damaged one, or none, is the end of an archive: here it is damage."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except _END:
            raise
        except HeaderError as error:
            raise ReadError(str(error)) from error


def _plain(name: str) -> str:
    """A member's name as that of a file below a folder: `./a//b` is `a/b`."""
    return PurePosixPath(name).as_posix()


def _members_of_7z(archive: Path, label: str) -> list[str]:
    py7zr = library(f"{label} is a 7z archive")
    try:
        with py7zr.SevenZipFile(archive) as opened:
            return [info.filename for info in opened.list() if info.is_file]
    except py7zr.exceptions.ArchiveError as error:
        raise PrerequisiteError(f"{label} cannot be read ({error}); get the archive again") from error


def _is_7z(archive: Path) -> bool:
    with archive.open("rb") as stream:
        return stream.read(len(_SEVEN_ZIP)) == _SEVEN_ZIP


def _unpack_tar(archive: Path, folder: Path, label: str) -> None:
    inspection = Inspection(label, archive.stat().st_size)
    with tarfile.open(archive, tarinfo=_Header) as opened:
        for info in opened:
            member = Member(_plain(info.name), info.size, info.isdir(), not (info.isdir() or info.isreg()))
            inspection.look_at(member)
            if info.isreg():
                _extract(opened, info, folder / info.name)


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
    py7zr = library(f"{label} is a 7z archive")
    try:
        with py7zr.SevenZipFile(archive) as opened:
            if opened.needs_password():
                raise PrerequisiteError(f"{label} is encrypted; get the archive again")
            inspection = Inspection(label, archive.stat().st_size)
            members = opened.list()
            for info in members:
                special = info.is_symlink or not (info.is_directory or info.is_file)
                inspection.look_at(Member(_plain(info.filename), info.uncompressed, info.is_directory, special))
            opened.extractall(folder)  # noqa: S202 its members have been looked over
    except (py7zr.exceptions.ArchiveError, py7zr.exceptions.AbsolutePathError) as error:
        raise PrerequisiteError(f"{label} cannot be read ({error}); get the archive again") from error
    for name in sorted(info.filename for info in members if info.is_directory):
        (folder / name).chmod(_FOLDER_MODE)  # whatever the archive says: files are linked from it, then it is removed
    for info in members:
        path = folder / info.filename
        if info.is_file:
            if path.stat().st_size != info.uncompressed:
                raise EOFError(f"member {info.filename} is cut off")
            path.chmod(FINISHED)
