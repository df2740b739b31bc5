"""Reads what an agent left in a separate process with limits: the agent may have made it to hang or eat all memory."""

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from mlebench.core.isolate import IsolatedCallError, call

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def inspect_isolated(
    function: Callable[[Any], Result], argument: Any, *, seconds: float = 300, memory: float = 4 << 30
) -> Result:
    """The result of a function; IsolatedCallError if there is none, even if that is our bug: others are inspected."""
    try:
        return call(function, argument, seconds=seconds, memory=memory)
    except (IsolatedCallError, CancelledError):
        raise
    except Exception as error:
        logger.exception("An inspection failed; please report this")
        raise IsolatedCallError("mlebench failed; the traceback was logged") from error
