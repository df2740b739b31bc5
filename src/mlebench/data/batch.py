"""Prepares many competitions: one that fails does not stop the others, and several can be prepared at once."""

import logging
import os
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from queue import Empty
from threading import Thread
from typing import Any, NamedTuple

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.workers import start_server
from mlebench.data import ensure_leaderboard_exists
from mlebench.data.kaggle_api import RulesNotAcceptedError
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import Source
from mlebench.data.state import read_manifest_head
from mlebench.data.verification import OURS, changes, command_to_prepare_again
from mlebench.engine.progress import SILENT, Progress
from mlebench.registry import Competition, Registry

DIED = "killed"


class Outcome(NamedTuple):
    """How one competition ended: `prepared`, `already prepared`, `rules not accepted`, `failed`, `killed` or `bug`."""

    id: str
    status: str
    reason: str = ""
    error: PrerequisiteError | None = None  # if that is what ended it, in this process

    @property
    def ok(self) -> bool:
        return self.status in ("prepared", "already prepared")


def prepare_many(
    registry: Registry,
    ids: Sequence[str],
    source: Source,
    options: Options,
    *,
    jobs: int = 1,
    overwrite_leaderboard: bool = False,
    watch: Mapping[str, Progress] | None = None,
) -> Iterator[Outcome]:
    """Prepare competitions, `jobs` at a time; outcomes come as they end. `watch` has a watcher for each id.

    With fewer competitions than jobs, each gets more threads. Several competitions always run in separate processes,
    even one at a time: code that ends its process, or is killed for lack of memory, does not end the others.
    """
    watchers = watch or {}
    arguments = (Registry(registry.get_data_dir(), registry.profile), source, options, overwrite_leaderboard)
    threads = jobs // max(1, min(jobs, len(ids)))
    if len(ids) <= 1:
        _use_threads(threads)
        for id in ids:
            yield _prepare_one(id, *arguments, watch=watchers.get(id, SILENT))
        return
    start_server("mlebench.data.preload")
    context = get_context("forkserver")

    def run(some: Sequence[str], at_once: int) -> Iterator[Outcome]:
        events = context.Queue() if watchers else None  # a worker that is killed may leave it locked
        their_end, our_end = context.Pipe(duplex=False)
        with ProcessPoolExecutor(at_once, context, _begin_worker, (their_end, events, threads)) as pool, our_end:
            pending = {pool.submit(_prepare_elsewhere, id, *arguments): id for id in some}
            awaited = 0
            while pending:
                done, _ = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                awaited = _relay(events, watchers, awaited + sum(future.exception() is None for future in done))
                yield from (_outcome(pending.pop(future), future) for future in done)
            pool.shutdown()  # on success; otherwise `our_end` is closed first, and the workers end
        _relay(events, watchers)

    if jobs == 1:
        for id in ids:
            yield from run([id], 1)
        return
    died = []
    for outcome in run(ids, min(jobs, len(ids))):
        if outcome.status == DIED:
            died.append(outcome.id)
        else:
            yield outcome
    for id in died:  # one death ends the whole pool; run each alone to find the culprit
        yield from run([id], 1)


def _outcome(id: str, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(id, DIED, "its process was killed; most likely there was not enough memory")


def _relay(events: Any, watchers: Mapping[str, Progress], awaited: int = 0) -> int:
    """Pass on workers' messages, and wait for the final messages of `awaited` workers that have ended.

    Returns how many are still awaited: negative if workers about to end have already sent theirs.
    """
    while events:
        try:
            id, *event = events.get(timeout=2) if awaited > 0 else events.get_nowait()
        except Empty:
            break
        if not event:
            awaited -= 1
        elif id in watchers:
            watchers[id].tell(*event)
    return min(awaited, 0)  # what has not arrived by now is lost


_events: Any = None  # in a worker: where to report


class _Reported(Progress):
    """In a worker: tells the parent."""

    def __init__(self, id: str):
        self._id = id

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        _events.put((self._id, stage, done, total))


def _begin_worker(parent: Any, events: Any, threads: int) -> None:
    global _events
    _events = events
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    _use_threads(threads)
    logging.disable(logging.INFO)


def _end_with(parent: Any) -> None:
    """End at once when the parent ends or gives up; unfinished work can be resumed, as after any interruption."""
    parent.poll(None)
    os._exit(1)


def _use_threads(count: int) -> None:
    # Imported here because it loads libraries that a process that only waits does not need.
    from mlebench.engine.threads import use_threads

    use_threads(count)


def _prepare_elsewhere(
    id: str, registry: Registry, source: Source, options: Options, overwrite_leaderboard: bool
) -> Outcome:
    """In a separate process; its messages go through a queue if anyone is listening."""
    watch = _Reported(id) if _events else SILENT
    outcome = _prepare_one(id, registry, source, options, overwrite_leaderboard, watch)
    if _events:
        _events.put((id,))  # the final message: the outcome takes another route and may arrive first
    return outcome._replace(error=None)  # its class may be the competition's own, which our parent cannot load


def _reservations(competition: Competition, options: Options) -> str:
    """Why existing prepared data may differ from what would be prepared now."""
    head = read_manifest_head(competition)
    if head is None:
        return "by another program; `mlebench verify` checks it"
    found = changes(competition)
    command = command_to_prepare_again(competition)
    if options.original_description and head.description == OURS:
        found.append(f"{paths.DESCRIPTION} is ours")
        command += " --description original"
    return f"but {', and '.join(found)}; `{command}` prepares it again" if found else ""


def _prepare_one(
    id: str, registry: Registry, source: Source, options: Options, overwrite_leaderboard: bool, watch: Progress
) -> Outcome:
    try:
        competition = registry.get_competition(id)
        if overwrite_leaderboard:
            ensure_leaderboard_exists(competition, force=True)
        if prepare(competition, source, options, watch):
            return Outcome(id, "prepared")
        return Outcome(id, "already prepared", _reservations(competition, options))
    except RulesNotAcceptedError as error:
        return Outcome(id, "rules not accepted", str(error), error)
    except PrerequisiteError as error:
        return Outcome(id, "failed", str(error), error)
    except Exception:
        return Outcome(id, "bug", traceback.format_exc())
