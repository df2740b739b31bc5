"""Live lines about long work, at the bottom of a terminal; other output appears above them.

Imported only where they are shown, since it loads rich.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from mlebench.cli.quantities import amount_text, duration_text, size_text
from mlebench.engine.progress import Progress

RATE_SECONDS = 30  # the window that a rate is measured over
# Each column, and the width of a terminal that has room for it: a narrow one shows names, which may be cut, and bytes.
COLUMNS = [
    (0, TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))),
    (60, TextColumn("{task.fields[stage]}", markup=False)),
    (110, BarColumn(20)),
    (0, TextColumn("{task.fields[amount]}", markup=False)),
    (80, TextColumn("{task.fields[rate]}", markup=False)),
    (80, TextColumn("{task.fields[left]}", markup=False)),
]


class Bars(RichProgress):
    """A line for each item at work with bytes, rate and time left, and one for all of them."""

    def __init__(self, items: Sequence[str], console: Console, *, redirect_stdout: bool):
        self.items: dict[str, ItemProgress] = {}
        super().__init__(
            console=console,
            transient=True,
            expand=True,
            redirect_stdout=redirect_stdout,
            speed_estimate_period=RATE_SECONDS,
        )
        self._all = self.add_task("", visible=len(items) > 1)
        self.items = {item: ItemProgress(self, self.add_task(item, visible=False)) for item in items}

    def get_renderables(self) -> Iterable[RenderableType]:
        if not self.items:  # rich asks for the first time before all is set up
            return
        self._measure(list(self.items.values()))
        self.columns = tuple(column for width, column in COLUMNS if self.console.width >= width)
        table = self.make_tasks_table(self.tasks)
        table.padding = (0, 2, 0, 0)
        yield table

    def _measure(self, items: "list[ItemProgress]") -> None:
        for item in items:
            done, total = item.stages.get(item.current, (0, None))
            amount = amount_text(done, total) if done or total else ""
            self._show(item.task, item.uncounted(), (done, total), stage=item.current, amount=amount)
        done, left = sum(item.done for item in items), [item.left for item in items]
        known, more = done + sum(filter(None, left)), None in left
        amount = amount_text(done, known, more=more) if known else ""
        whole = self._tasks[self._all]
        whole.description = f"{sum(item.ended for item in items)} of {len(items)} done"
        self._show(self._all, done - int(whole.completed), (done, None if more else known), stage="", amount=amount)

    def _show(self, id: TaskID, new: int, amounts: tuple[int, int | None], **fields: str) -> None:
        """Count the new bytes, even if there are none: then the rate falls. Amounts are set and not counted."""
        self.advance(id, new)
        task = self._tasks[id]
        task.completed, task.total = amounts
        rate = task.speed if (task.elapsed or 0) >= 1 else None
        left = duration_text(task.remaining / rate) if rate and task.remaining is not None else ""
        task.fields.update(fields, rate=f"{size_text(int(rate))}/s" if rate else "", left=left)


class ItemProgress(Progress):
    """The progress of one item."""

    def __init__(self, bars: Bars, task: TaskID):
        self._bars = bars
        self.task = task
        self.current = ""  # the stage at work
        self.stages: dict[str, tuple[int, int | None]] = {}  # bytes done of each that has begun, and its total
        self.done = self._counted = 0  # bytes of all stages so far; they only grow
        self.ended = False

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        # A stage may begin with bytes that are already there, as in a resumed download, or start over: those do not
        # count, and what was done before still does.
        before, _ = self.stages.get(stage, (done, None))
        self.done += max(0, done - before)
        self.stages[stage] = done, total
        if stage != self.current:
            self.current = stage
            self._bars.reset(self.task, visible=not self.ended)  # shown at once, even if it is soon over

    def end(self) -> None:
        self.ended = True
        # Shown now, not later: bars must not change while other output is printed.
        self._bars.update(self.task, visible=False, refresh=True)

    def uncounted(self) -> int:
        """Bytes done since the last call."""
        new = self.done - self._counted
        self._counted += new
        return new

    @property
    def left(self) -> int | None:
        """Bytes left of all stages that have begun, if the current one knows its total."""
        if self.ended:
            return 0
        if self.stages.get(self.current, (0, None))[1] is None:
            return None
        return sum(total - done for done, total in list(self.stages.values()) if total is not None)
