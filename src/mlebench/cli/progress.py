"""Shows the progress of long work: live lines on a terminal, a plain line now and then elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mlebench.cli.output import amount_text, is_terminal
from mlebench.engine.progress import Progress

logger = logging.getLogger(__name__)

PLAIN_SECONDS = 30  # between two plain lines about one item


@contextmanager
def watching(items: Sequence[str]) -> Iterator[Mapping[str, Progress]]:
    """For each item, the object that receives its progress."""
    if is_terminal(sys.stderr):
        from rich.console import Console

        from mlebench.cli.bars import Bars

        console = Console(stderr=True)
        if console.is_interactive:
            with Bars(items, console) as bars:
                yield bars.items
            return
    yield {item: _PlainLines(item) for item in items}


class _PlainLines(Progress):
    """Prints a line when work on an item begins, and then one from time to time."""

    def __init__(self, item: str):
        self._item = item
        self._told_at: float | None = None

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        now = time.monotonic()
        if self._told_at is None:
            logger.info("%s: %s", self._item, stage)
        elif now - self._told_at >= PLAIN_SECONDS:
            logger.info("%s: %s%s", self._item, stage, f", {amount_text(done, total)}" if done or total else "")
        else:
            return
        self._told_at = now
