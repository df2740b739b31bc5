"""Progress of long work. One object is passed from the command line down to where bytes are moved."""

from functools import cached_property
from threading import Lock

TOLD_BYTES = 1 << 20  # between two reports about a stage: some work comes in very small pieces


class Progress:
    """Receives the progress of each stage. This one ignores it; subclasses show it."""

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Report that `done` bytes of a stage are done, out of `total` if that is known."""

    def end(self) -> None:
        """Report that all stages are over."""

    def stage(self, name: str, total: int | None) -> "Stage":
        """Begin a stage."""
        return Stage(self, name, total)

    @cached_property
    def small_files(self) -> "Stage":
        """All small files that are read, together: there may be many."""
        return self.stage("reading", None)


class Stage:
    """One pass over a number of bytes: adds up what is done and reports now and then. Threads may share it."""

    def __init__(self, progress: Progress, name: str, total: int | None):
        self._progress = progress
        self._name = name
        self.total = total
        self._done = self._reported = 0
        self._lock = Lock()
        progress.tell(name, 0, total)

    def advance(self, size: int) -> None:
        """Add `size` bytes to what is done."""
        with self._lock:
            self._set(self._done + size)

    def reach(self, position: int) -> None:
        """Report that `place` bytes are done; progress never moves backwards."""
        with self._lock:
            self._set(position)

    def _set(self, done: int) -> None:
        if self.total is not None:  # which may be an estimate
            done = min(done, self.total)
        self._done = max(self._done, done)
        if self._done - self._reported >= TOLD_BYTES or (self._done == self.total and self._done > self._reported):
            self._reported = self._done
            self._progress.tell(self._name, self._done, self.total)

    def finish(self) -> None:
        """Everything is done, whatever the total was."""
        with self._lock:
            self._progress.tell(self._name, self._done if self.total is None else self.total, self.total)

    def part(self, size: int, work: float) -> "Part":
        """`size` bytes of this stage that take `work`, counted in something else, such as rows."""
        return Part(self, size, work)


class Part:
    """Part of a stage that is counted in another unit."""

    def __init__(self, stage: Stage, size: int, work: float):
        self._stage = stage
        self._size = size
        self._work = work
        self._done = 0.0
        self._reported = 0

    def advance(self, work: float) -> None:
        self._done = min(self._work, self._done + work)
        self._reach(int(self._size * self._done / self._work) if self._work else self._size)

    def finish(self) -> None:
        self._reach(self._size)

    def _reach(self, reported: int) -> None:
        self._stage.advance(reported - self._reported)
        self._reported = reported


SILENT = Progress()
SILENT_STAGE = SILENT.stage("", None)
