"""Shows the progress of long work: live lines on a terminal, a plain line now and then elsewhere."""

import logging
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mlebench.cli.output import amount_text, is_terminal, size_text
from mlebench.engine.progress import Progress

logger = logging.getLogger(__name__)

PACE_SECONDS = 30  # the window over which a rate is measured
PLAIN_SECONDS = 30  # between two plain lines about one item
# A narrow terminal shows names and bytes; from these widths on there is room for more.
STAGE_WIDTH, RATE_WIDTH, BAR_WIDTH = 60, 80, 110


class Watchers(dict[str, Progress]):
    """For each item, the object that receives its progress."""

    def end(self, item: str) -> None:
        """Call this when an item is done."""


@contextmanager
def watching(items: Sequence[str]) -> Iterator[Watchers]:
    """On a terminal: a line for each item in progress with bytes, rate and time left, and one for the total."""
    if is_terminal(sys.stderr):
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_interactive:
            with bars(items, console) as watchers:
                yield watchers
            return
    yield Watchers({item: _PlainLines(item) for item in items})


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


@contextmanager
def bars(items: Sequence[str], console: Any) -> Iterator[Watchers]:
    """Lines at the bottom of a terminal; other output appears above them."""
    from rich.live import Live

    whole = _Whole({item: _Work(item) for item in items})
    with Live(
        get_renderable=lambda: _table(whole, console.width),
        console=console,
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),
    ) as live:

        class Shown(Watchers):
            def end(self, item: str) -> None:
                whole.works[item].ended = True
                live.refresh()  # now, not later: bars must not change while other output is printed

        class Line(Progress):
            def __init__(self, work: _Work):
                self._work = work

            def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
                begins = stage != self._work.stage
                self._work.tell(stage, done, total)
                if begins:  # shown at once, even if it is soon over
                    live.refresh()

        yield Shown({item: Line(work) for item, work in whole.works.items()})


class _Pace:
    """How fast bytes have arrived recently."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, done: int) -> float | None:
        """Bytes per second, given that `done` bytes are done now."""
        now = time.monotonic()
        self._seen.append((now, done))
        while now - self._seen[0][0] > PACE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        return (done - before) / (now - since) if now - since >= 1 else None


@dataclass
class _Leg:
    """One pass from the first byte to the last; a stage may have several, one after the other."""

    found: int  # bytes already there when it began, as in a resumed download
    done: int
    total: int | None
    before: int = 0  # bytes of earlier legs of the same stage


class _Work:
    """The progress of one item."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stage = ""
        self.ended = False
        self.pace = _Pace()
        self._legs: dict[str, _Leg] = {}

    def tell(self, stage: str, done: int, total: int | None) -> None:
        if stage != self.stage:
            self.stage, self.pace = stage, _Pace()
        leg = self._legs.get(stage)
        if leg is None or done < leg.done:  # it starts over: what was done still counts
            before = leg.before + leg.done - leg.found if leg else 0
            self._legs[stage] = _Leg(done, done, total, before)
        else:
            leg.done, leg.total = done, total

    @property
    def leg(self) -> _Leg | None:
        return self._legs.get(self.stage)

    @property
    def done(self) -> int:
        """Bytes of all stages so far; they only grow."""
        return sum(leg.before + leg.done - leg.found for leg in list(self._legs.values()))

    @property
    def total(self) -> int | None:
        """Bytes of all stages that have begun, if the current one knows its total."""
        if self.ended:
            return self.done
        if self.leg is None or self.leg.total is None:
            return None
        legs = list(self._legs.values())
        return sum(leg.before + (leg.done if leg.total is None else leg.total) - leg.found for leg in legs)


class _Whole:
    """The combined progress of all items."""

    def __init__(self, works: dict[str, _Work]) -> None:
        self.works = works
        self.pace = _Pace()

    def rows(self) -> Iterator["_Row"]:
        works = list(self.works.values())
        if len(works) > 1:
            ended = sum(work.ended for work in works)
            done, totals = sum(work.done for work in works), [work.total for work in works]
            known = sum(total if total is not None else work.done for work, total in zip(works, totals, strict=True))
            total = known if None not in totals else None
            amount = amount_text(done, known, more=total is None) if known else ""
            yield _Row.of(f"{ended} of {len(works)} done", "", amount, done, total, self.pace.rate(done))
        for work in works:
            if (leg := work.leg) and not work.ended:
                amount = amount_text(leg.done, leg.total) if leg.done or leg.total else ""
                yield _Row.of(work.name, work.stage, amount, leg.done, leg.total, work.pace.rate(work.done))


@dataclass(frozen=True)
class _Row:
    """What a line shows."""

    name: str
    stage: str
    amount: str
    rate: str
    left: str
    done: int
    total: int | None

    @staticmethod
    def of(name: str, stage: str, amount: str, done: int, total: int | None, rate: float | None) -> "_Row":
        left = str(timedelta(seconds=round((total - done) / rate))) if rate and total is not None else ""
        return _Row(name, stage, amount, f"{size_text(int(rate))}/s" if rate else "", left, done, total)


def _table(whole: _Whole, width: int) -> Any:
    """The lines, with the columns that fit the terminal; long names are cut."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for _ in range(1 + (width >= STAGE_WIDTH) + 2 * (width >= RATE_WIDTH) + (width >= BAR_WIDTH)):
        table.add_column(no_wrap=True)
    for row in whole.rows():
        cells: list[Any] = [Text(row.name)]
        if width >= STAGE_WIDTH:
            cells.append(Text(row.stage))
        if width >= BAR_WIDTH:
            cells.append(ProgressBar(row.total or None, row.done, width=20))
        cells.append(Text(row.amount))
        if width >= RATE_WIDTH:
            cells += [Text(row.rate), Text(row.left)]
        table.add_row(*cells)
    return table
