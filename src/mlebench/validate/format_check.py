"""Is a submission's format right? Needs only public files: grades it against a stand-in for the answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from mlebench.core.authors import author_errors
from mlebench.core.errors import (
    CompetitionError,
    InvalidSubmissionError,
    MissingCodeError,
    NotPreparedError,
    PrerequisiteError,
)
from mlebench.core.os_errors import explanation
from mlebench.core.paths import moved
from mlebench.core.untrusted import LARGEST_SUBMISSION, UntrustedFileError, open_untrusted
from mlebench.registry import Competition, competition_of
from mlebench.scoring import import_fn
from mlebench.validate.submission_table import has_csv_name, read_table

VALID = "Submission is valid."


class CheckFailedError(Exception):
    """The check came to no verdict: a fault of the benchmark, not of the submission. An agent may read the text."""

    def __init__(self, fault: BaseException):
        super().__init__(
            f"The format check failed ({type(fault).__name__}). "
            "This is a fault of the benchmark, not of the submission; please report it."
        )


def validate_format(
    submission: Path, competition: Competition | str, limit: int = LARGEST_SUBMISSION
) -> tuple[bool, str]:
    """Whether a submission has the right format; no answer is read. A competition may be given by its id.

    A submission is "valid" if it could be read and the grader ran. If the grader fails for any reason other than the
    submission's format, that is a CheckFailedError.
    """
    submission, competition = Path(submission), competition_of(competition)
    if not has_csv_name(submission):
        return False, invalid("Submission file must be a CSV file.")
    try:
        stream = open_untrusted(submission, limit)
    except UntrustedFileError as error:
        return False, invalid(f"The submission {error}.")
    with stream:
        return check_format(stream, competition)


def check_format(stream: BinaryIO, competition: Competition) -> tuple[bool, str]:
    """Check the format of a submission that is already open, whatever its name."""
    try:
        table = read_table(stream, competition)
        _grade(competition, table)
    except InvalidSubmissionError as error:
        return False, invalid(str(error))
    return True, VALID


def _grade(competition: Competition, table: Any) -> None:
    try:
        competition.grader.score(table, stand_in(competition))
    except CompetitionError as error:
        raise CheckFailedError(error) from error
    except (InvalidSubmissionError, PrerequisiteError):
        raise
    except OSError as error:
        if fault := explanation(error):  # most likely a public file that we may not read
            raise PrerequisiteError(fault) from error
        raise CheckFailedError(error) from error
    except (Exception, SystemExit) as error:
        raise CheckFailedError(error) from error


def stand_in(competition: Competition) -> Any:
    """A table in the shape of the answers with arbitrary targets, made from public files.

    A competition whose answers look different from its sample submission defines `stand_in(public)` beside `grade`.
    """
    try:
        own = import_fn(f"{competition.grader.module}:stand_in")
    except MissingCodeError:
        from mlebench.kit.submission_form import stand_in_of_sample

        return stand_in_of_sample(competition)
    with author_errors():
        try:
            return own(competition.public_dir)
        except FileNotFoundError as error:
            if error.filename and Path(error.filename).is_relative_to(competition.public_dir):
                raise NotPreparedError(f"{competition.id} is not prepared: there is no {error.filename}") from error
            raise


def over_public(competition: Competition, folder: Path) -> Competition:
    """A competition whose public files are in this folder, as in a sandbox."""
    sample = competition.public_sample or competition.sample_submission
    return replace(competition, public_dir=folder, public_sample=moved(sample, competition.public_dir, folder))


def invalid(reason: str) -> str:
    return f"Submission invalid! {reason}"
