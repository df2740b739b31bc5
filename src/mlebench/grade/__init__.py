"""Grading: from a submission to its report. Nothing else reads private data."""

from mlebench.data.state import is_dataset_prepared
from mlebench.grade.batch import aggregate_reports, grade_jsonl
from mlebench.grade.limits import Limits
from mlebench.grade.profiles import grade_csv_under_profiles, grade_jsonl_under_profiles, require_same_tests
from mlebench.grade.submission import grade_csv
from mlebench.grade.validation import validate_submission
from mlebench.validate import stand_in, validate_format

__all__ = [
    "Limits",
    "aggregate_reports",
    "grade_csv",
    "grade_csv_under_profiles",
    "grade_jsonl",
    "grade_jsonl_under_profiles",
    "is_dataset_prepared",
    "require_same_tests",
    "stand_in",
    "validate_format",
    "validate_submission",
]
