"""How far long work is. One object is told, from the command line down to where bytes are moved."""

TOLD_BYTES = 1 << 20  # between two words about a stage: some work goes in very small pieces


class Progress:
    """Is told how far each stage of the work is. This one tells nobody; others show it."""

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """So many bytes of a stage are done, of so many in all where that is known."""

    def stage(self, name: str, total: int | None) -> "Stage":
        """A stage that begins now."""
        return Stage(self, name, total)


class Stage:
    """One way through so many bytes: it adds up what is done, and tells now and then."""

    def __init__(self, progress: Progress, name: str, total: int | None):
        self._progress = progress
        self._name = name
        self._total = total
        self._done = self._told = 0
        progress.tell(name, 0, total)

    def advance(self, size: int) -> None:
        """So many more bytes are done."""
        self._done += size
        if self._total is not None:  # which may be an estimate
            self._done = min(self._done, self._total)
        if self._done - self._told >= TOLD_BYTES or (self._done == self._total and self._done > self._told):
            self._told = self._done
            self._progress.tell(self._name, self._done, self._total)

    def finish(self) -> None:
        """All is done, whatever was expected."""
        self._progress.tell(self._name, self._done if self._total is None else self._total, self._total)


SILENT = Progress()
UNTOLD = SILENT.stage("", None)
