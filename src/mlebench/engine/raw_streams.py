"""Reading raw files: faults are blamed on the data, and large files report progress, as does what is made from them."""

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from mlebench.core.errors import PrerequisiteError, RawDataError
from mlebench.engine.progress import SILENT, SILENT_STAGE, Progress, Stage
from mlebench.engine.trees import COPY_BYTES

Piece = TypeVar("Piece", bytes, str)
WATCHED_BYTES = 16 << 20  # a smaller file is read before anyone could see progress


def watched(stream: BinaryIO, size: int, progress: Progress) -> BinaryIO:
    """Yield the bytes, and report how many of a large file have been read. Small ones are counted together."""
    stage = stage_if_large("reading", size, progress)
    if stage is not SILENT_STAGE:
        return reporting(stream, stage)
    progress.small_files.advance(size)
    return stream


def stage_if_large(name: str, size: int, progress: Progress) -> Stage:
    """A stage of work on a file; of a small file nothing is reported."""
    return SILENT_STAGE if size < WATCHED_BYTES or progress is SILENT else progress.stage(name, size)


def reporting(stream: BinaryIO, stage: Stage) -> BinaryIO:
    """Return a stream of the same bytes that advances the stage as they are read."""
    return cast(BinaryIO, io.BufferedReader(_MonitoredStream(stream, stage), COPY_BYTES))


def reporting_pieces(pieces: Iterable[Piece], progress: Progress, name: str = "printing") -> Iterator[Piece]:
    """Yield the pieces; if they are large together, a stage reports how many bytes have been made."""
    done, stage = 0, None
    for piece in pieces:
        yield piece
        done += len(piece)
        if stage or done >= WATCHED_BYTES:
            stage = stage or progress.stage(name, None)
            stage.advance(done)
            done = 0


@contextmanager
def data_errors(label: str | None, *of_code: type[Exception]) -> Iterator[None]:
    """Blame the file for any error of a library that cannot read it; `what` is None if there is no raw file."""
    try:
        yield
    except (PrerequisiteError, MemoryError, *of_code):
        raise
    except Exception as error:
        if label is None or (isinstance(error, OSError) and error.errno is not None):  # without an errno it is damage
            raise
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RawDataError(f"{label} cannot be read ({reason})") from error


def md5_of(path: Path, stage: Stage = SILENT_STAGE) -> str:
    """The md5 of a file."""
    digest, buffer = hashlib.md5(usedforsecurity=False), bytearray(COPY_BYTES)
    with path.open("rb", buffering=0) as stream:
        while size := stream.readinto(buffer):
            digest.update(memoryview(buffer)[:size])
            stage.advance(size)
    return digest.hexdigest()


class _MonitoredStream(io.RawIOBase):
    def __init__(self, stream: BinaryIO, stage: Stage):
        self._stream = stream
        self._stage = stage

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = cast(io.BufferedReader, self._stream).readinto(buffer)
        self._stage.advance(size)
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()
