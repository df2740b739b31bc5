"""Is a submission's format right? Told from public files alone: it is graded against a stand-in for the answers."""

import importlib
from pathlib import Path
from typing import Any

from mlebench.errors import InvalidSubmissionError
from mlebench.registry import Competition
from mlebench.untrusted import LARGEST_SUBMISSION, UntrustedFileError
from mlebench.validate.reading import has_csv_name, read_submission

VALID = "Submission is valid."


def validate_format(submission: Path, competition: Competition, limit: int = LARGEST_SUBMISSION) -> tuple[bool, str]:
    """Whether a submission has the right format; no answer is read."""
    submission = Path(submission)
    try:
        if not has_csv_name(submission):
            raise InvalidSubmissionError("Submission file must be a CSV file.")
        competition.grader.grade_fn(read_submission(submission, limit), stand_in(competition))
    except InvalidSubmissionError as error:
        return False, invalid(str(error))
    except UntrustedFileError as error:
        return False, invalid(f"Submission file {submission} {error}.")
    except Exception:  # noqa: S110 a metric may not be defined for a stand-in's arbitrary targets; the format is right
        pass
    return True, VALID


def stand_in(competition: Competition) -> Any:
    """A table in the shape of the answers with arbitrary targets, made from public files.

    A competition whose answers look different from its sample submission defines `stand_in(public)` beside `grade`.
    """
    module = importlib.import_module(competition.grader.module)
    if hasattr(module, "stand_in"):
        return module.stand_in(competition.public_dir)
    from mlebench.kit.samples import public_sample

    return public_sample(competition)


def invalid(reason: str) -> str:
    return f"Submission invalid! {reason}"
