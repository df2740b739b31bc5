"""A check in its own process, with limits: a submission may make pandas hang or eat all memory.

A submission comes as a file descriptor: it has no name to open, guess or forget.
"""

import logging
import os
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.isolate import IsolatedCallError, call
from mlebench.core.memory import total_memory
from mlebench.registry import Competition, registry

logger = logging.getLogger(__name__)

LONGEST_MESSAGE = 4_000  # characters
PRELOAD = ("mlebench.kit", "mlebench.metrics", "mlebench.validate.format_check")


class HttpAnswer(NamedTuple):
    """What a client is told: an HTTP status, and a JSON object."""

    status: int
    body: dict[str, Any]


def fault(status: int, error: str, details: str) -> HttpAnswer:
    """Clients read `details` whenever there is an `error`."""
    return HttpAnswer(status, {"error": error, "details": details[:LONGEST_MESSAGE]})


@dataclass(frozen=True)
class CheckLimits:
    """What one check may use."""

    seconds: int = 300
    memory: int = field(default_factory=lambda: total_memory() // 3)  # bytes


def check(submission: int, competition: Competition, limits: CheckLimits) -> HttpAnswer:
    """Check the submission behind a file descriptor; however the check ends, there is an answer."""
    try:
        return call(
            _answer, competition, seconds=limits.seconds, memory=limits.memory, files=[submission], preload=PRELOAD
        )
    except CancelledError:
        raise
    except Exception as error:
        if not isinstance(error, IsolatedCallError):
            logger.exception("a check failed")
        allowed = f"{limits.seconds} seconds and {limits.memory // 1_000_000} MB of memory"
        why = f"The check ended without a verdict; it may take {allowed}."
        return fault(500, "The submission could not be checked.", why)


def _answer(competition: Competition, submission: int) -> HttpAnswer:
    from mlebench.validate.format_check import CheckFailedError, check_format

    registry.competition_dir(competition.id)  # so that its code can be imported, wherever it is
    try:
        with os.fdopen(submission, "rb") as stream:
            stream.seek(0)
            valid, message = check_format(stream, competition)
    except CheckFailedError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from None
        logger.exception("%s", error)
        return fault(500, "The validator failed.", str(error))
    except PrerequisiteError as error:  # the text may name folders of this machine, which are not the client's business
        logger.error("%s", error)
        return fault(500, "The validator cannot work.", "The competition's public files are not complete.")
    return HttpAnswer(200, {"is_valid": valid, "result": message[:LONGEST_MESSAGE]})
