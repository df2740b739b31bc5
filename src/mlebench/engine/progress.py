"""Progress of long work. One object is passed from the command line down to where bytes are moved."""

TOLD_BYTES = 1 << 20  # between two reports about a stage: some work comes in very small pieces


class Progress:
    """Receives the progress of each stage. This one ignores it; subclasses show it."""

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Report that `done` bytes of a stage are done, out of `total` if that is known."""

    def stage(self, name: str, total: int | None) -> "Stage":
        """Begin a stage."""
        return Stage(self, name, total)


class Stage:
    """One pass over a number of bytes: adds up what is done and reports now and then."""

    def __init__(self, progress: Progress, name: str, total: int | None):
        self._progress = progress
        self._name = name
        self._total = total
        self._done = self._told = 0
        progress.tell(name, 0, total)

    def advance(self, size: int) -> None:
        """Add `size` bytes to what is done."""
        self._done += size
        if self._total is not None:  # which may be an estimate
            self._done = min(self._done, self._total)
        if self._done - self._told >= TOLD_BYTES or (self._done == self._total and self._done > self._told):
            self._told = self._done
            self._progress.tell(self._name, self._done, self._total)

    def finish(self) -> None:
        """Everything is done, whatever the total was."""
        self._progress.tell(self._name, self._done if self._total is None else self._total, self._total)


SILENT = Progress()
UNTOLD = SILENT.stage("", None)
