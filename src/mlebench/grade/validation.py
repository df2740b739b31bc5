"""Does the grader accept a submission? Asks with the answers, so it is for the host; agents have `validate`."""

import logging
from pathlib import Path

from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.untrusted import UntrustedFileError
from mlebench.data.answers import answers_for_grader
from mlebench.data.state import require_prepared
from mlebench.registry import Competition, competition_of
from mlebench.validate.check import VALID, invalid
from mlebench.validate.reading import has_csv_name, read_submission

logger = logging.getLogger(__name__)


def validate_submission(submission: Path, competition: Competition | str) -> tuple[bool, str]:
    """Whether the grader accepts a submission; needs the answers. A competition may be given by its id."""
    competition = competition_of(competition)
    submission = Path(submission)
    if not has_csv_name(submission):
        return False, invalid("Submission file must be a CSV file.")
    require_prepared(competition, grading_only=True)
    competition.grader.require_packages()
    try:
        table = read_submission(submission)
    except UntrustedFileError as error:
        return False, invalid(f"Submission file {submission} {error}.")
    except InvalidSubmissionError as error:
        return False, invalid(str(error))
    try:
        competition.grader.grade_fn(table, answers_for_grader(competition.answers))
    except InvalidSubmissionError as error:
        return False, invalid(f"The grader does not accept it:\n{error}")
    except (Exception, SystemExit) as error:
        logger.exception("The grader of %s failed; please report this", competition.id)
        return False, invalid(
            f"The grader failed, perhaps through no fault of the submission:\n{type(error).__name__}: {error}"
        )
    return True, VALID
