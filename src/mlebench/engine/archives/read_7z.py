"""Reads 7z archives. Their bytes are unpacked by py7zr and cut into files here.

py7zr's own `extract` resolves paths and asks for the free memory once per file, which takes longer than unpacking a
small one, and keeps packed bytes in memory that it has read too early. It has no documented way to read a *folder*,
which is what 7z calls files that are packed as one stream. This module takes them as py7zr's `extract` does.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.archives.member_checks import ArchiveMember, MemberChecks, plain_name
from mlebench.engine.progress import Progress, Stage
from mlebench.engine.threads import threads
from mlebench.engine.trees import COPY_BYTES, create, create_whole

_SIGNATURE = b"7z\xbc\xaf\x27\x1c"
# The most that is unpacked at a time. py7zr reads 1 MiB each time, needed or not, so this should be far more.
BLOCK_BYTES = 32 << 20


def is_7z(archive: Path) -> bool:
    with archive.open("rb") as stream:
        return stream.read(len(_SIGNATURE)) == _SIGNATURE


@contextmanager
def opened_7z(archive: Path, label: str) -> Iterator[Any]:
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


def unpack_7z(archive: Path, folder: Path, label: str, progress: Progress) -> None:
    with opened_7z(archive, label) as opened:
        if opened.needs_password():
            raise PrerequisiteError(f"{label} is encrypted; get the archive again")
        stage = progress.stage("unpacking", _check_all(opened, archive, label))
        target = _TargetFolder(str(folder), stage)
        for member in opened.files:
            target.make_folder_of(member)
            if member.emptystream and not member.is_directory:
                create_whole(target.path(member), b"")
        with ThreadPoolExecutor(threads()) as pool:
            for _ in pool.map(lambda solid: target.unpack(archive, solid), _solids(opened)):
                pass
        stage.finish()


def _check_all(opened: Any, archive: Path, label: str) -> int:
    """Check all members; returns how many bytes they hold."""
    checks = MemberChecks(label, archive.stat().st_size)
    for info in opened.list():
        if info.uncompressed < 0:  # which could offset a bomb
            raise EOFError(f"member {info.filename} is cut off")
        special = info.is_symlink or info.is_directory == info.is_file
        checks.check(ArchiveMember(plain_name(info.filename), info.uncompressed, info.is_directory, special))
    if any(member.folder is None and not member.emptystream for member in opened.files):
        raise EOFError("it lacks the content of some members")
    if sum(not member.emptystream for member in opened.files) != _packed_contents(opened):
        raise EOFError("it names fewer members than it holds")  # files would be missing, unnoticed
    return sum(member.uncompressed for member in opened.files)


def _packed_contents(opened: Any) -> int:
    """How many files' contents the archive says it holds."""
    streams = getattr(opened.header, "main_streams", None)
    return sum(streams.substreamsinfo.num_unpackstreams_folders) if streams else 0


class _SolidBlock(NamedTuple):
    """Files that are packed as one stream, and where it begins."""

    files: Sequence[Any]
    packed: Any
    start: int


def _solids(opened: Any) -> Iterator[_SolidBlock]:
    if streams := getattr(opened.header, "main_streams", None):
        for packed, start in zip(streams.unpackinfo.folders, streams.packinfo.packpositions, strict=False):
            if packed.files is not None:
                yield _SolidBlock(list(packed.files), packed, opened.afterheader + start)


class _TargetFolder:
    """Where files go; several threads may unpack to it."""

    def __init__(self, folder: str, stage: Stage):
        self._folder = folder
        self._stage = stage
        self._made: set[str] = set()

    def path(self, member: Any) -> str:
        return f"{self._folder}/{plain_name(member.filename)}"

    def make_folder_of(self, member: Any) -> None:
        path = self.path(member)
        folder = path if member.is_directory else path.rpartition("/")[0]
        if folder not in self._made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 there may be many
            self._made.add(folder)

    def unpack(self, archive: Path, solid: _SolidBlock) -> None:
        source = _UnpackedBytes(archive, solid)
        for member in solid.files:
            if not member.is_directory:
                self._write(source, member)
        source.check()

    def _write(self, source: "_UnpackedBytes", member: Any) -> None:
        content = source.take(member.uncompressed)
        crc32 = zlib.crc32(content)
        remaining = member.uncompressed - len(content)
        self._stage.advance(len(content))
        if not remaining:
            create_whole(self.path(member), content)
        else:
            with create(self.path(member), buffering=COPY_BYTES) as target:
                target.write(content)
                while remaining:
                    content = source.take(remaining)
                    crc32 = zlib.crc32(content, crc32)
                    remaining -= target.write(content)
                    self._stage.advance(len(content))
        if member.crc32 not in (None, crc32):
            raise EOFError(f"the content of member {member.filename} does not match its checksum")


class _UnpackedBytes:
    """The unpacked bytes of files that are packed as one stream."""

    def __init__(self, archive: Path, solid: _SolidBlock):
        self._remaining = sum(member.uncompressed for member in solid.files)
        self._decompressor = solid.packed.get_decompressor(solid.files[0].compressed)
        self._blocks = self._unpack(archive, solid.start)
        self._block = memoryview(b"")

    def take(self, most: int) -> memoryview:
        """The next bytes: at least one, unless none are requested."""
        while most and not self._block:
            self._block = memoryview(next(self._blocks))
        taken, self._block = self._block[:most], self._block[most:]
        return taken

    def check(self) -> None:
        if self._decompressor.crc is not None and not self._decompressor.check_crc():
            raise EOFError("its content does not match its checksum")

    def _unpack(self, archive: Path, start: int) -> Iterator[bytes]:
        with archive.open("rb") as stream:
            stream.seek(start)
            while self._remaining:
                before = stream.tell()
                block = self._decompressor.decompress(stream, min(self._remaining, BLOCK_BYTES))
                if not block and stream.tell() == before:
                    raise EOFError("it is cut off")
                self._remaining -= len(block)
                yield block
