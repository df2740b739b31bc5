"""An agent's folder: which files count, their identity, and copies of them.

Links are refused, so nothing outside the folder is read.
`__pycache__`, `.git` and `.venv` are skipped: they change without the agent changing.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, SandboxError
from mlebench.core.untrusted import FileTooLargeError, UntrustedFileError, kind_of, open_untrusted

LARGEST_FOLDER = 1 << 30  # bytes
LARGEST_COPY = 1 << 20  # bytes of a program; runs share larger ones
COPY_BYTES = 1 << 20
PASSED_OVER = {"__pycache__", ".git", ".venv"}


class CopiedFiles(NamedTuple):
    identity: str
    shareable: tuple[str, ...] = ()  # files that are empty in the copy, for the folder's own to be bound over them


def identity(folder: Path, shared: Sequence[Path] = ()) -> str:
    """Return a hash that is equal for folders with equal files; shared files count as if they were in the folder."""
    return _read_through(folder, shared, None).identity


def copy_files(
    folder: Path, target: Path, shared: Sequence[Path] = (), *, without_programs: bool = False
) -> CopiedFiles:
    """Copy the files to a folder that exists, or all but large programs; say what was copied."""
    return _read_through(folder, shared, target, without_programs)


def _read_through(
    folder: Path, shared: Sequence[Path], target: Path | None, without_programs: bool = False
) -> CopiedFiles:
    digest, remaining = hashlib.sha256(), LARGEST_FOLDER
    shareable: list[str] = []
    files = [(name, folder / name, status) for name, status in _files(folder, "")]
    files += [(path.name, path, path.stat()) for path in shared]
    for name, path, status in sorted(files, key=lambda file: file[0]):
        is_program = bool(status.st_mode & stat.S_IXUSR)
        is_shareable = without_programs and path.is_relative_to(folder) and _is_shareable(status)
        try:
            with open_untrusted(path, remaining) as source, _copy(target, name, is_program) as copy:
                content = hashlib.sha256()
                while block := source.read(COPY_BYTES):
                    content.update(block)
                    if not is_shareable:
                        copy.write(block)
                remaining -= source.tell()
        except FileTooLargeError:
            raise PrerequisiteError(f"{folder} holds more than {LARGEST_FOLDER >> 30} GB, too much to copy") from None
        except UntrustedFileError as error:
            raise PrerequisiteError(f"the file {path} {error}") from None
        digest.update(f"{len(name)} {name} {is_program:d} {content.hexdigest()}\n".encode(errors="surrogateescape"))
        if is_shareable:
            shareable.append(name)
    return CopiedFiles(digest.hexdigest(), tuple(shareable))


def _is_shareable(status: os.stat_result) -> bool:
    """Whether runs can use a file of the folder instead of a copy: a large program, or one that nobody may write.

    All users can read it: root's sandboxes, and those of some engines, belong to another user. Other large files, such
    as a database, are copied: the agent may be meant to change them.
    """
    mode = status.st_mode
    is_fixed = mode & 0o111 == 0o111 or not mode & 0o222
    return status.st_size > LARGEST_COPY and mode & 0o444 == 0o444 and is_fixed


def _copy(target: Path | None, name: str, is_program: bool) -> BinaryIO:
    if target is None:
        return Path(os.devnull).open("wb")
    path = target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    copy = path.open("xb")
    os.fchmod(copy.fileno(), 0o755 if is_program else 0o644)
    return copy


# Not `core.untrusted.walk`: nothing of this folder may be left out, because its identity must not depend on a limit.
def _files(folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """(name, status) of every file."""
    try:
        entries = list(os.scandir(folder / prefix))
    except OSError as error:
        raise PrerequisiteError(f"cannot read {folder / prefix}: {(error.strerror or '').lower()}") from None
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            if entry.name not in PASSED_OVER:
                yield from _files(folder, f"{prefix}{entry.name}/")
        elif stat.S_ISREG(mode):
            yield f"{prefix}{entry.name}", status
        else:
            raise PrerequisiteError(
                f"{entry.path} is {kind_of(mode)}: an agent's folder may hold only files and folders"
            )


def environment_dir() -> Path:
    """`environment/`, which is in the package when installed and beside `src/` in a checkout."""
    for folder in (paths.module_dir(), paths.module_dir().parent.parent):
        if (folder / "environment" / "instructions.txt").is_file():
            return folder / "environment"
    raise SandboxError("the folder environment/ is missing from this installation: install mlebench again")
