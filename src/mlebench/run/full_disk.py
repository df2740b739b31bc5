"""Who filled a disk decides what becomes of a run on it.

An agent that left no valid submission is not to blame if it was something else. If it was the agent itself, nothing of
what it left but its submission may keep the run from ending, and others from using the disk.
"""

from dataclasses import replace

import msgspec

from mlebench.core.outcomes import INFRA_ERROR, INVALID, MISSING, OVER_DISK
from mlebench.records.report import Report
from mlebench.sandbox.session import TaskOutcome
from mlebench.sandbox.shared_disk import OTHER_RUNS, OTHERS, THIS_RUN


class DiskFilledError(Exception):
    """The attempt failed because of a full disk: the agent may try again."""


def has_filled_disk(outcome: TaskOutcome) -> bool:
    """Whether a run has filled the disk, or its share of it."""
    return outcome.ended == OVER_DISK or outcome.used.disk_filled_by == THIS_RUN


def charged_for_uploads(outcome: TaskOutcome) -> TaskOutcome:
    """The outcome of an agent whose uploads to the validator, which count as those of others, took too much space."""
    if outcome.used.disk_filled_by != OTHERS:
        return outcome
    outcome = replace(outcome, used=msgspec.structs.replace(outcome.used, disk_filled_by=THIS_RUN))
    if outcome.ended != INFRA_ERROR or not outcome.exit_code:
        return outcome
    detail = "on a disk that its uploads to the validator had filled"
    return replace(outcome, ended=OVER_DISK, detail=f"the agent ended with exit code {outcome.exit_code} {detail}")


def require_disk_was_not_filled(outcome: TaskOutcome, report: Report | None) -> None:
    """DiskFilledError if there is no valid submission, perhaps because it could not be written."""
    filled_by = outcome.used.disk_filled_by
    if filled_by in (OTHERS, OTHER_RUNS) and report and report.status in (INVALID, MISSING):
        raise DiskFilledError(f"there is no valid submission, on a disk that {filled_by} had filled")
