"""A corpus of mutated submissions for every competition: graders and the format check handle anything."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mutations import COUNT, mutations

from mlebench.core.errors import InvalidSubmissionError
from mlebench.data.answers import load_answers
from mlebench.registry import Competition, Registry
from mlebench.validate import over_public
from mlebench.validate.format_check import check_format
from mlebench.validate.submission_table import read_table

# Where the format check accepts what the grader refuses, and why it cannot know better. Decision 6 names them too.
MORE_LENIENT: dict[str, str] = {}


@pytest.mark.timeout(300 + 10 * COUNT)
def test_mutated_submissions_get_a_verdict_and_the_format_check_accepts_only_what_the_grader_accepts(
    competition_id: str, default_twin: Callable[[str], Competition], tmp_path: Path
) -> None:
    competition = default_twin(competition_id)
    answers = load_answers(competition.answers)
    # The format check has the public folder; where the answers would be, there is nothing.
    public = over_public(Registry(tmp_path / "nowhere").get_competition(competition_id), competition.public_dir)
    for name, content in mutations(competition, competition_id):
        with np.errstate(over="ignore"):  # a score may be infinite
            accepted, reason = _graded(competition, content, answers)
            valid, message = check_format(io.BytesIO(content), public)
        assert accepted or not valid or competition_id in MORE_LENIENT, f"{name}: {reason}"
        folders = str(tmp_path), str(competition.paths.data_dir)
        assert not [text for text in (reason, message) for folder in folders if folder in text], name
        assert message.startswith("Submission is valid." if valid else "Submission invalid! "), name


def _graded(competition: Competition, content: bytes, answers: Any) -> tuple[bool, str]:
    """Whether the grader accepts it, and why not. Any other exception is our fault, and fails the test."""
    try:
        competition.grader.score(read_table(io.BytesIO(content)), answers)
    except InvalidSubmissionError as error:
        return False, str(error)
    return True, ""
