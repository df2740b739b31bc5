"""A result appears in one rename, and only once: a second runner fails because the target exists.

A result is complete before it can be seen, and an attempt's working folder is only removed after that. If the runner
dies before moving the result's parts to where readers look for them, the next process that finds the run not ended does
that again. If it cannot even assemble the result, because the disk is full, the working folder still has everything.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlebench.core import paths
from mlebench.core.leases import Lease
from mlebench.records import read, write
from mlebench.records.run import PLANNED, RUNNING, RunRecord
from mlebench.records.run_groups import Run
from mlebench.run.snapshots import remove_unfinished
from mlebench.sandbox.collect import CollectedFiles, CopyLimits, collect, remove_tree

RECORD = "record.json"
AGENTS_PARTS = (paths.SUBMISSION, paths.LOGS, paths.CODE)  # the most important first
OUR_PARTS = (paths.RUN_LOG, "snapshots")  # which the agent cannot write to
PARTS = (*AGENTS_PARTS, *OUR_PARTS)


def stage(run: Run, lease: Lease) -> Path:
    """An empty folder in which to assemble a result."""
    staged = run.paths.staged_result(lease.token)
    _clear(staged)
    staged.mkdir()
    return staged


def collect_outputs(work: Path, target: Path, room: CopyLimits | None = None) -> CollectedFiles:
    """Copy what an attempt left in its writable folders; none of its processes may be alive."""
    seen = CollectedFiles()
    room = room or CopyLimits()
    for part in AGENTS_PARTS:
        collect(work / "home" / part, target / part, room, seen)
    remove_unfinished(paths.RunPaths(work).snapshots)
    move_parts(work, target)  # its log and snapshots, which are ours
    _add_calls(work, target / paths.LOGS)
    return seen


def make_room(work: Path) -> None:
    """Remove what is never stored of an attempt that has filled the disk, so that more of the rest can be."""
    remove_tree(work / "tmp")
    with suppress(OSError), os.scandir(work / "home") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in AGENTS_PARTS:
                    remove_tree(Path(entry.path))
            else:
                Path(entry.path).unlink()


def _add_calls(work: Path, logs: Path) -> None:
    """Add our own record of the model calls, replacing whatever the agent may have left under that name.

    A link, not a move: if we are killed before this result counts, the next attempt finds them where they were.
    """
    source, target = paths.model_calls(work), paths.model_calls(logs)
    if source.is_file() and not source.is_symlink():
        _clear(target)
        try:
            os.link(source, target)
        except OSError:  # some disks have no links
            shutil.copyfile(source, target)


def unstage(staged: Path, work: Path) -> None:
    """Undo `collect_outputs`: what was moved goes back to the working folder, and copies are removed."""
    if staged.is_dir():
        move_parts(staged, work, OUR_PARTS)
        shutil.rmtree(staged)


def move_parts(source: Path, target: Path, parts: Iterable[str] = PARTS) -> None:
    """Move the parts of an attempt that the target lacks."""
    target.mkdir(parents=True, exist_ok=True)
    for part in parts:
        if (source / part).exists() and not (target / part).exists():
            (source / part).rename(target / part)


def publish_result(run: Run, staged: Path, lease: Lease, **outcome: Any) -> None:
    """Make a staged result the run's, if the lease is still ours and there is none yet. `finalize` then ends the
    run."""
    if run.record.state == PLANNED:
        run = run.write(state=RUNNING)  # a result beside a planned run would count as set aside
    record = run.record.changed(**outcome)
    write(staged / RECORD, record)
    lease.require()
    try:
        staged.rename(run.paths.result)
    except OSError:
        if not is_published(run):  # sshfs only says "not permitted" where there is one
            raise
        shutil.rmtree(staged)


def finalize(run: Run) -> Run:
    """Move the parts of a published result to their places and mark the run as ended."""
    for part in PARTS:
        source = run.paths.result / part
        target = run.paths.root / part
        if source.exists():
            _clear(target)
            source.rename(target)
    _remove_drafts(run)
    record = read_result(run)
    write(run.paths.record, record)
    return Run(run.paths, record)


def is_published(run: Run) -> bool:
    return (run.paths.result / RECORD).is_file()


def read_result(run: Run) -> RunRecord:
    return read(run.paths.result / RECORD, RunRecord)


def reset_run(run: Run, **changes: Any) -> Run:
    """Set a run that has ended back to planned; what it left is kept among its attempts."""
    run = run.write(
        state=PLANNED, ended=None, detail=None, submission=None, report=None, ended_at=None, model=None, **changes
    )
    archive_leftovers(run)
    return run


def archive_leftovers(run: Run) -> None:
    """Move what earlier attempts left in a run's folder to its attempts."""
    aside = run.paths.attempt(len(run.record.attempts))
    for part in (run.paths.result.name, *PARTS):  # the result first: without it, the rest does not count
        source = run.paths.root / part
        if source.exists():
            aside.mkdir(parents=True, exist_ok=True)
            _clear(aside / part)
            source.rename(aside / part)
    _remove_drafts(run)


def _remove_drafts(run: Run) -> None:
    """Remove files left half-written by processes that were killed."""
    for name in (run.paths.result.name, run.paths.record.name):
        for draft in run.paths.root.glob(f"{name}.*"):
            _clear(draft)


def _clear(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
