"""Earlier states of a submission, kept during a run so that score over time can be drawn afterwards.

They are never graded before the run has ended. Their number and total size are bounded; beyond that, every other one
is dropped, so that the rest still covers the whole run.
"""

import os
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from mlebench.core.errors import StorageError
from mlebench.core.os_errors import free_space, free_space_floor
from mlebench.core.paths import SUBMISSION
from mlebench.sandbox.base import Task
from mlebench.sandbox.collect import snapshot

MOST = 200
MOST_BYTES = 4 << 30
INTERVAL = 1.0


class Snapshots:
    """Keeps each new state of a task's submission.

    It works in a thread of its own: on a slow disk, copying a large file takes longer than a supervisor waits for its
    runner.
    """

    def __init__(self, task: Task, agent_started_at: str):
        self._source = task.home / SUBMISSION / f"{SUBMISSION}.csv"
        self._folder = task.work / "snapshots"
        since = time.time() - datetime.fromisoformat(agent_started_at).timestamp()
        self._begun = time.monotonic() - max(0.0, since)  # as in the record, so that readers can place them in time
        self._last: tuple[int, int, int] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait for a copy in progress."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self.look()

    def look(self) -> None:
        """Keep the submission if it has changed since the last look. If our disk refuses, the next look tries again."""
        with suppress(OSError, StorageError):
            self._keep()

    def _keep(self) -> None:
        elapsed = time.monotonic() - self._begun
        status = os.stat(self._source, follow_symlinks=False)
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        if version == self._last:
            return
        free, floor = free_space(self._source), free_space_floor(self._source)
        if free.bytes - 2 * status.st_size < floor.bytes or free.files < floor.files:
            return  # it must still fit on the disk when it is collected
        self._folder.mkdir(exist_ok=True)
        self._make_room(status.st_size)
        if snapshot(self._source, self._folder / f"{elapsed:010.1f}.csv", MOST_BYTES // 4):
            self._last = version
        else:
            remove_unfinished(self._folder)

    def _make_room(self, size: int) -> None:
        snapshots = sorted(self._folder.glob("*.csv"))
        while snapshots and (
            len(snapshots) >= MOST or size + sum(path.stat().st_size for path in snapshots) > MOST_BYTES
        ):
            for path in snapshots[::2]:
                path.unlink()
            snapshots = snapshots[1::2]


def remove_unfinished(folder: Path) -> None:
    """Remove copies that were cut off, by a full disk or because the runner was killed."""
    for draft in folder.glob("*.part"):
        draft.unlink(missing_ok=True)
