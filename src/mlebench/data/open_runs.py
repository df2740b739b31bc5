"""Which runs of a competition are in progress: grading during a run could tell an agent its score.

A run puts a file into the competition's folder when it begins and removes it when it ends. A killed run leaves its file
behind. Only in the PID namespace where it ran can we check whether its process is alive; anywhere else the file counts
for two days after it was written.
"""

import time
from contextlib import suppress
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import is_temporary
from mlebench.core.processes import Process
from mlebench.records import Record, now, read, write
from mlebench.registry import Competition

BELIEVED_FOR = 48 * 3600  # seconds that a run counts as open if we cannot check


class OpenRun(Record, frozen=True, kw_only=True):
    """A run that is in progress, or that was killed."""

    run_dir: str
    process: Process  # the runner's
    since: str


def mark_open(competition: Competition, run_dir: Path, token: str) -> None:
    """Record that a run has begun in this process; a read-only data directory has no such files."""
    run = OpenRun(run_dir=str(run_dir), process=Process.current(), since=now())
    path = _path(competition, token)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write(path, run)


def unmark_open(competition: Competition, token: str) -> None:
    """Record that a run has ended; also removes a partial file left by a kill while it began."""
    path = _path(competition, token)
    with suppress(OSError):
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink(missing_ok=True)


def open_runs(competition: Competition) -> list[str]:
    """The tokens of runs that are open, or may be. The files of other runs are removed."""
    try:
        paths = sorted(competition.paths.runs_open.iterdir())
    except OSError:
        return []
    # A run begins when its file is complete: half of one belongs to a runner that was killed before that.
    return [path.name for path in paths if _is_open(path) and not is_temporary(path.name)]


def refuse_while_open(competition: Competition, action: str) -> None:
    """Raise while a run is open: data that it uses must not change."""
    if open_ := open_runs(competition):
        runs = "a run uses" if len(open_) == 1 else f"{len(open_)} runs use"
        raise PrerequisiteError(
            f"{competition.id}: {runs} this data, so {action} has to wait: `mlebench runs` shows which "
            f"(marks of runs are in {competition.paths.runs_open})"
        )


def _is_open(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:  # it has just ended
        return False
    runner = _runner(path)
    is_open = runner.is_alive if runner and runner.is_here else age < BELIEVED_FOR
    if not is_open:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return is_open


def _runner(path: Path) -> Process | None:
    """The process that works on a run; None if the file does not say."""
    try:
        return read(path, OpenRun).process
    except (OSError, PrerequisiteError):
        return None


def _path(competition: Competition, token: str) -> Path:
    if Path(token).name != token:
        raise ValueError(f"a token is a plain name, not {token!r}")
    return competition.paths.runs_open / token
