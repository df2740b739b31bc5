"""Reading submissions, in the dialect of the tables they were made from."""

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mlebench.errors import InvalidSubmissionError
from mlebench.untrusted import LARGEST_SUBMISSION, open_untrusted

if TYPE_CHECKING:
    import pandas as pd


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
        return read_frame(stream)
    except pd.errors.EmptyDataError:
        raise InvalidSubmissionError("Submission is empty.") from None
    except UnicodeDecodeError:
        raise InvalidSubmissionError("Submission is not UTF-8 text.") from None
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        raise InvalidSubmissionError(f"Submission is not a CSV file: {error}") from error
