"""Parses what an agent left in a separate process with limits: the agent may have made it to hang or eat all memory."""

import logging
import multiprocessing
import resource
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

logger = logging.getLogger(__name__)

SECONDS = 300
MEMORY = 4 << 30  # bytes, beyond those in use when it starts


class GaveUpError(Exception):
    """It ended without a result; the message says why."""


def apart(function: Callable[[Any], Any], argument: Any, *, seconds: int = SECONDS, memory: int = MEMORY) -> Any:
    """The result of a module's function for an argument; both must be picklable."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([function.__module__])  # imported once, before any limit
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(theirs, function, argument, seconds, memory), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds + 30):
            raise EOFError
        is_done, result = ours.recv()
    except EOFError:
        raise GaveUpError(f"it took more than {seconds} s or {memory >> 20} MiB of memory") from None
    finally:
        ours.close()
        child.kill()
        child.join()
    if not is_done:
        logger.error("%s", result)
        raise GaveUpError("mlebench failed; the traceback was logged")
    return result


def _work(reply: Connection, function: Callable[[Any], Any], argument: Any, seconds: int, memory: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)  # ends this process, whatever it is busy with
    _limit_memory(memory)
    try:
        answer = True, function(argument)
    except MemoryError:
        return
    except Exception:  # our bug: the other subjects are still inspected
        answer = False, traceback.format_exc()
    reply.send(answer)


def _limit_memory(more: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as pages:  # noqa: PTH123
        limit = int(pages.read().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
