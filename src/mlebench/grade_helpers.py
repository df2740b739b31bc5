"""Names that existing clients import from here."""

from mlebench.core.errors import InvalidSubmissionError
from mlebench.scoring import CompetitionReport, Grader

__all__ = ["CompetitionReport", "Grader", "InvalidSubmissionError"]
