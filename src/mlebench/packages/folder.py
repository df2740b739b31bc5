"""The wheels and source archives of a folder, and what identifies them."""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.packages.project import named_in


class FolderFile(msgspec.Struct, frozen=True):
    name: str
    project: str
    version: str
    sha256: str
    size: int
    inode: int
    changed: int  # nanoseconds


def folder_files(folder: Path) -> list[FolderFile]:
    """The files that can be installed, at the top of a folder; all are read. Raises PrerequisiteError if none is."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 names are all we need
    except OSError as error:
        raise PrerequisiteError(f"--packages: cannot read {folder}: {reason_of(error)}") from None
    files = [file for name in names if (named := named_in(name)) and (file := _read(folder / name, *named))]
    if not files:
        raise PrerequisiteError(
            f"--packages: {folder} has no wheels: fill it with `pip download --dest {folder} NAME …`"
        )
    return files


def identity(files: Iterable[FolderFile]) -> str:
    """Equal for folders that offer equal files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name} {file.sha256}\n".encode())
    return digest.hexdigest()


def is_as_it_was(file: FolderFile, status: os.stat_result) -> bool:
    """Whether a file is the one that was read, and has not been written since."""
    return (status.st_ino, status.st_size, status.st_mtime_ns) == (file.inode, file.size, file.changed)


def _read(path: Path, project: str, version: str) -> FolderFile | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PrerequisiteError(f"--packages: cannot read {path}: {reason_of(error)}") from None
    return FolderFile(path.name, project, version, sha256, status.st_size, status.st_ino, status.st_mtime_ns)
