"""What grading a submission may take: a multiple of what the gold submission takes.

Time is CPU time, so that a busy machine does not change a verdict.
"""

import math
import os
from typing import NamedTuple

from mlebench.core.untrusted import LARGEST_SUBMISSION
from mlebench.records.data import GoldCost

LEAST_SECONDS, LEAST_MEMORY = 60.0, 2_000_000_000  # bytes
TIMES_SECONDS, TIMES_MEMORY = 10, 4  # what gold takes
# Where its size alone would allow a submission more: an honest one is larger than gold, but padding must not help.
MOST_SECONDS_FOR_SIZE, MOST_MEMORY_FOR_SIZE = 1800.0, 8_000_000_000
TIMES_UNMEASURED = 10  # the least, if the gold submission cannot be graded
INTERVAL_SECONDS = 120.0  # the most time to spend on an interval
PATIENCE = 10  # how much longer than its CPU time grading may take on a busy machine


class GradingLimits(NamedTuple):
    """Limits of the user's own for grading one submission, besides the default ones; None: no others."""

    size: int = LARGEST_SUBMISSION  # bytes of the submission
    seconds: float | None = None
    memory: int | None = None  # bytes; enforced where the system has /proc


DEFAULT_LIMITS = GradingLimits()


class Allowance(NamedTuple):
    """What grading a submission may take before the submission counts as invalid."""

    seconds: float  # of CPU time
    memory: int  # bytes

    @classmethod
    def for_size(cls, size: int, cost: GoldCost | None, *, interval: bool = False) -> "Allowance":
        if cost is None:
            seconds, memory = TIMES_UNMEASURED * LEAST_SECONDS, TIMES_UNMEASURED * LEAST_MEMORY
        else:
            scale = max(1.0, size / max(1, cost.size))
            seconds, memory = TIMES_SECONDS * cost.seconds, TIMES_MEMORY * cost.memory
            seconds = max(LEAST_SECONDS, seconds, min(seconds * scale, MOST_SECONDS_FOR_SIZE))
            memory = max(LEAST_MEMORY, memory, min(math.ceil(memory * scale), MOST_MEMORY_FOR_SIZE))
        # Drawing rows for an interval is our idea, and must not count against the submission.
        return cls(2 * seconds + INTERVAL_SECONDS, 2 * memory) if interval else cls(seconds, memory)

    @property
    def wall_seconds(self) -> float:
        return PATIENCE * self.seconds


def size_of(path: str) -> int:
    """The size of a submission, which may not exist; a link counts as it is."""
    try:
        return os.lstat(path).st_size
    except (OSError, ValueError):
        return 0
