"""Is a submission's format right? Two ways: with the answers, on the host; or with public files only."""

import importlib
from pathlib import Path
from typing import Any

from mlebench.data.state import require_prepared
from mlebench.errors import InvalidSubmissionError
from mlebench.grade.reading import is_submission_file, load_answers, read_submission
from mlebench.registry import Competition

VALID = "Submission is valid."


def validate_submission(submission: Path, competition: Competition) -> tuple[bool, str]:
    """Whether the grader accepts a submission; needs the answers, so it is for the host only."""
    submission = Path(submission)
    fault = _file_fault(submission)
    if fault:
        return False, fault
    require_prepared(competition, grading_only=True)
    try:
        competition.grader.grade_fn(read_submission(submission), load_answers(competition.answers))
    except Exception as error:
        return False, _invalid(f"The grader does not accept it:\n{error}")
    return True, VALID


def validate_format(submission: Path, competition: Competition) -> tuple[bool, str]:
    """Whether a submission has the right format, told from public files alone: it is graded against a stand-in."""
    submission = Path(submission)
    fault = _file_fault(submission)
    if fault:
        return False, fault
    answers = stand_in(competition)
    try:
        competition.grader.grade_fn(read_submission(submission), answers)
    except InvalidSubmissionError as error:
        return False, _invalid(str(error))
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


def _file_fault(submission: Path) -> str | None:
    if not submission.is_file():
        return _invalid(f"Submission file {submission} does not exist.")
    if not is_submission_file(submission):
        return _invalid("Submission file must be a CSV file.")
    return None


def _invalid(reason: str) -> str:
    return f"Submission invalid! {reason}"
