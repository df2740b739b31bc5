"""Reading what is graded: submissions and answers, in the dialect of the tables they were made from."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mlebench.errors import InvalidSubmissionError
from mlebench.untrusted import LARGEST_SUBMISSION, open_untrusted

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 1 << 20  # bytes


def has_csv_name(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def read_submission(path: Path, limit: int = LARGEST_SUBMISSION) -> "pd.DataFrame":
    """A submission as a data frame; one that cannot be read as a table is invalid."""
    with open_untrusted(path, limit) as stream:
        return read_table(stream)


def read_table(stream: BinaryIO) -> "pd.DataFrame":
    """The same, of a file that has been opened already."""
    import pandas as pd

    from mlebench.kit.frames import read_frame

    try:
        return read_frame(_without_nul(stream))
    except pd.errors.EmptyDataError:
        raise InvalidSubmissionError("Submission is empty.") from None
    except UnicodeDecodeError:
        raise InvalidSubmissionError("Submission is not UTF-8 text.") from None
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        raise InvalidSubmissionError(f"Submission is not a CSV file: {error}") from error


def _without_nul(stream: BinaryIO) -> BinaryIO:
    """All that a stream gives, in memory, so that it is read once. What a cell with NUL says depends on pandas."""
    content = io.BytesIO()
    while block := stream.read(_BLOCK):
        if b"\0" in block:
            raise InvalidSubmissionError("Submission is not plain UTF-8 text: it has NUL bytes.")
        content.write(block)
    content.seek(0)
    return content


def load_answers(path_to_answers: Path) -> Any:
    """Answers: a data frame from CSV, a list of records from JSON lines."""
    if path_to_answers.suffix == ".csv":
        from mlebench.kit.frames import read_frame

        return read_frame(path_to_answers)
    if path_to_answers.suffix == ".jsonl":
        return read_jsonl(path_to_answers)
    raise ValueError(f"answers must be .csv or .jsonl, not {path_to_answers.name}")


def read_jsonl(file_path: Path | str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """One JSON value a line; on request, blank lines and those that begin with # or // are passed over."""
    with Path(file_path).open(encoding="utf-8") as file:
        lines: Iterable[str] = file
        if skip_commented_out_lines:
            lines = (line for line in map(str.strip, file) if line and not line.startswith(("#", "//")))
        return [json.loads(line) for line in lines]
