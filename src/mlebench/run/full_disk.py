"""An agent that left no valid submission, on a disk that something else had filled, is not to blame."""

from mlebench.outcomes import INVALID, MISSING
from mlebench.records.report import Report
from mlebench.sandbox.session import Outcome
from mlebench.sandbox.shared_disk import OTHER_RUNS, OTHERS


class DiskFilledError(Exception):
    """The attempt failed because of a full disk: the agent may try again."""


def require_disk_was_not_filled(outcome: Outcome, report: Report | None) -> None:
    """DiskFilledError if there is no valid submission, perhaps because it could not be written."""
    filled_by = outcome.used.disk_filled_by
    if filled_by in (OTHERS, OTHER_RUNS) and report and report.status in (INVALID, MISSING):
        raise DiskFilledError(f"there is no valid submission, on a disk that {filled_by} had filled")
