"""Reads submissions as tables, in the dialect of the tables they were made from.

The columns are counted before a parser sees them: for millions, pandas takes minutes and gigabytes. Short rows count
too: pandas fills them up, so that a wide header and rows of one cell make a small file a huge table.
"""

import re
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO

from mlebench.core.errors import InvalidSubmissionError, PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer

if TYPE_CHECKING:
    import pandas as pd

    from mlebench.kit.submission_form import HasProfile

_BLOCK = 1 << 20  # bytes
_IN_MEMORY = 64 << 20  # bytes; the copy of a larger submission is a temporary file
MOST_COLUMNS = 10_000  # the widest sample submission has 121
MOST_CELLS = 64  # for each byte of the file; a table of up to 128 columns cannot have more
_STEP = 8192  # bytes; less than MOST_COLUMNS, so that no line that fits into a step is too wide
# Only at the beginning of a field does a quote mean that commas and line ends up to the next single quote are text.
_OPENING = rb'(?<![^,\r\n])"'
_TEXT = rb'[^"]*+(?:""[^"]*+)*+"'
_QUOTED = re.compile(_OPENING + _TEXT)
_UNCLOSED = re.compile(_OPENING)
_REST = re.compile(_TEXT)


def has_csv_name(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def read_table(stream: BinaryIO, competition: "HasProfile | None" = None) -> "pd.DataFrame":
    """A submission as its grader gets it; one that cannot be read as a table is invalid.

    Without a competition, any table will do.
    """
    import pandas as pd

    from mlebench.engine.frames import read_frame
    from mlebench.kit.submission_form import read_submission

    try:
        with SpooledTemporaryFile(_IN_MEMORY) as copy:  # so that the stream is read once
            _checked_copy(stream, copy)
            copy.seek(0)
            return read_submission(copy, competition) if competition else read_frame(copy)
    except PrerequisiteError:  # of the competition
        raise
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


class ColumnCounter:
    """Is given a file block by block; raises as soon as a row has too many columns. Quotes are pandas' own."""

    def __init__(self) -> None:
        self._size = 0  # bytes so far
        self._rows = 0
        self._columns = 0  # of the first two rows: the second may be wider than the header
        self._row_is_blank = True  # so far
        self._commas = 0  # of the row so far
        self._is_quoted = False  # whether the next byte is inside quotes
        self._field_begins = True  # whether it is the first of a field
        self._quotes = b""  # what the last block ended with: only the next byte tells what they mean

    def add(self, block: bytes) -> None:
        self._size += len(block)
        block = self._quotes + block
        text = block.rstrip(b'"')
        quotes = len(block) - len(text)
        self._quotes = b'"' * (quotes if quotes < 3 else 2 - quotes % 2)  # two in a row are a character
        if text:
            self._count(self._after_first_rows(self._without_quoted(text).replace(b"\r", b"\n")))
        if self._rows * self._columns > MOST_CELLS * self._size:
            raise InvalidSubmissionError("Submission has rows with far fewer cells than it has columns.")

    def _without_quoted(self, block: bytes) -> bytes:
        """The block without what is inside quotes; `x` stands for a field that has begun."""
        if self._is_quoted:
            if not (rest := _REST.match(block)):
                return b""
            block = b"x" + block[rest.end() :]
        elif not self._field_begins:
            block = b"x" + block
        if b'"' in block:
            block = _QUOTED.sub(b"", block)
        unclosed = _UNCLOSED.search(block) if b'"' in block else None
        self._is_quoted = unclosed is not None
        self._field_begins = block.endswith((b",", b"\n", b"\r"))
        return block[: unclosed.start()] if unclosed else block

    def _after_first_rows(self, block: bytes) -> bytes:
        while block and self._rows < 2:
            if self._row_is_blank:
                block = block.lstrip(b" \t\n")  # blank lines are no rows
            line, line_end, block = block.partition(b"\n")
            self._row_is_blank = self._row_is_blank and not line
            self._require_few(line.count(b","))
            self._columns = max(self._columns, self._commas + 1)
            if line_end:
                self._rows += 1
                self._commas, self._row_is_blank = 0, True
        return block

    def _count(self, block: bytes) -> None:
        self._rows += block.count(b"\n")
        for start in range(0, len(block), _STEP):
            end = start + _STEP
            line_end = block.find(b"\n", start, end)
            if line_end < 0:
                self._require_few(block.count(b",", start, end))
            else:
                self._require_few(block.count(b",", start, line_end))
                self._commas = block.count(b",", block.rfind(b"\n", start, end), end)

    def _require_few(self, more: int) -> None:
        self._commas += more
        if self._commas >= MOST_COLUMNS:
            raise InvalidSubmissionError(f"Submission has a row with more than {MOST_COLUMNS} columns.")


def has_few_columns(content: bytes) -> bool:
    """Whether no row of a whole file has too many columns."""
    try:
        ColumnCounter().add(content)
    except InvalidSubmissionError:
        return False
    return True
