"""A progress listener that remembers what was reported to it."""

from mlebench.engine.progress import Progress


class RecordingProgress(Progress):
    def __init__(self) -> None:
        self.events: list[tuple[str, int, int | None]] = []

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        self.events.append((stage, done, total))

    @property
    def stages(self) -> list[str]:
        return [stage for stage, _, _ in self.events]
