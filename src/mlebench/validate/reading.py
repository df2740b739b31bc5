"""Reading submissions, in the dialect of the tables they were made from."""

from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO

from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.validate.columns import ColumnCounter

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 1 << 20  # bytes
_IN_MEMORY = 64 << 20  # bytes; the copy of a larger submission is a temporary file


def has_csv_name(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def read_table(stream: BinaryIO) -> "pd.DataFrame":
    """A submission as a data frame; one that cannot be read as a table is invalid."""
    import pandas as pd

    from mlebench.engine.frames import read_frame

    try:
        with SpooledTemporaryFile(_IN_MEMORY) as copy:  # so that the stream is read once
            _checked_copy(stream, copy)
            return read_frame(copy)
    except pd.errors.EmptyDataError:
        raise InvalidSubmissionError("Submission is empty.") from None
    except UnicodeDecodeError:
        raise InvalidSubmissionError("Submission is not UTF-8 text.") from None
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        if "out of memory" in str(error):  # what the parser says in place of a MemoryError
            raise MemoryError(str(error)) from error
        raise InvalidSubmissionError(f"Submission is not a CSV file: {error}") from error


def _checked_copy(stream: BinaryIO, copy: IO[bytes]) -> None:
    """Refuses Git LFS pointers, NUL, which versions of pandas read differently, and rows too wide for any parser."""
    columns = ColumnCounter()
    while block := stream.read(_BLOCK):
        if is_lfs_pointer(block):
            raise InvalidSubmissionError(f"Submission {LFS_POINTER}.")
        if b"\0" in block:
            raise InvalidSubmissionError("Submission is not plain UTF-8 text: it has NUL bytes.")
        columns.add(block)
        copy.write(block)
