"""Which runs of a competition are going on: a grade that is made meanwhile could tell an agent its score.

A run puts a file into the competition's folder when it begins and removes it when it ends. One that was killed leaves
its file behind. Whether its process lives can be told where it ran, in the same namespace of processes; from anywhere
else the file counts for two days after it was written.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

from mlebench.errors import PrerequisiteError
from mlebench.records import Record, now
from mlebench.registry import Competition

BELIEVED_FOR = 48 * 3600  # seconds that a run counts as open when nobody here can tell
_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class OpenRun(Record):
    """A run that is going on, or that was killed."""

    run_dir: str
    host: str
    place: str | None  # boot and process namespace; None where they are not known
    pid: int
    process_start: str | None
    since: str


def mark_open(competition: Competition, run_dir: Path, token: str) -> None:
    """Say that a run has begun, in this process; a data directory that cannot be written to has no such files."""
    run = OpenRun(
        run_dir=str(run_dir),
        host=gethostname(),
        place=_place(),
        pid=os.getpid(),
        process_start=_process_start(os.getpid()),
        since=now(),
    )
    path = _path(competition, token)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        run.write(path)


def unmark_open(competition: Competition, token: str) -> None:
    """Say that it has ended."""
    with suppress(OSError):
        _path(competition, token).unlink(missing_ok=True)


def open_runs(competition: Competition) -> list[str]:
    """The tokens of runs that are open, or may be. Files of others are removed."""
    try:
        paths = sorted(competition.paths.runs_open.iterdir())
    except OSError:
        return []
    return [path.name for path in paths if _is_open(path)]


def _is_open(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:  # it has just ended
        return False
    try:
        run = OpenRun.read(path)
    except (OSError, PrerequisiteError):
        run = None
    if run and run.place and run.place == _place():
        is_open = run.process_start is not None and run.process_start == _process_start(run.pid)
    else:
        is_open = age < BELIEVED_FOR
    if not is_open:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return is_open


def _path(competition: Competition, token: str) -> Path:
    if Path(token).name != token:
        raise ValueError(f"a token is a plain name, not {token!r}")
    return competition.paths.runs_open / token


def _place() -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def _process_start(pid: int) -> str | None:
    """When a process began, in ticks since boot; None when there is none."""
    try:
        # The second field is a name in brackets, which may hold blanks and brackets; the 22nd is what we want.
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return None
