"""Does the grader accept a submission? Asks with the answers, so it is for the host; agents have `validate`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from mlebench.core.errors import CompetitionError, InvalidSubmissionError
from mlebench.core.outcomes import GRADER_ERROR, INVALID
from mlebench.core.untrusted import LARGEST_SUBMISSION, UntrustedFileError, open_untrusted
from mlebench.data.answers import answers_for_grader
from mlebench.data.state import require_prepared
from mlebench.grade.in_process import HashedStream
from mlebench.grade.log import log_validation
from mlebench.registry import Competition, competition_of
from mlebench.validate.format_check import VALID, invalid
from mlebench.validate.submission_table import has_csv_name, read_table

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED = "valid"  # in the log of grades: no score was asked for

logger = logging.getLogger(__name__)


def validate_submission(submission: Path, competition: Competition | str) -> tuple[bool, str]:
    """Whether the grader accepts a submission; needs the answers, so it leaves a line in the log of grades.

    A competition may be given by its id.
    """
    competition = competition_of(competition)
    submission = Path(submission)
    if not has_csv_name(submission):
        return False, invalid("Submission file must be a CSV file.")
    require_prepared(competition, grading_only=True)
    competition.grader.require_packages()
    try:
        with (
            open_untrusted(submission, LARGEST_SUBMISSION) as file,
            HashedStream(file, LARGEST_SUBMISSION) as stream,
        ):
            table = read_table(cast("BinaryIO", stream), competition)
            sha256 = stream.sha256()
    except UntrustedFileError as error:
        return False, invalid(f"Submission file {submission} {error}.")
    except InvalidSubmissionError as error:
        return False, invalid(str(error))
    status, message = _verdict(table, competition)
    log_validation(competition, status, sha256)
    return status == ACCEPTED, message


def _verdict(table: "pd.DataFrame", competition: Competition) -> tuple[str, str]:
    """A word for the log, and a message."""
    try:
        competition.grader.score(table, answers_for_grader(competition))
    except InvalidSubmissionError as error:
        return INVALID, invalid(f"The grader does not accept it:\n{error}")
    except (Exception, SystemExit) as error:
        fault = str(error) if isinstance(error, CompetitionError) else f"{type(error).__name__}: {error}"
        if not isinstance(error, CompetitionError):
            logger.exception("The grader of %s failed; please report this", competition.id)
        return GRADER_ERROR, invalid(f"The grader failed, perhaps through no fault of the submission:\n{fault}")
    return ACCEPTED, VALID
