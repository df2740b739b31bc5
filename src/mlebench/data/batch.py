"""Prepares many competitions: one that fails does not stop the others, and several can be prepared at once."""

import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from typing import Any, NamedTuple

from mlebench.core import paths
from mlebench.core.errors import CompetitionError, PrerequisiteError
from mlebench.core.isolate import Calls, IsolatedCallError, call, notify
from mlebench.data import ensure_leaderboard_exists
from mlebench.data.kaggle_api import RulesNotAcceptedError
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import RawSource
from mlebench.data.state import read_manifest_head
from mlebench.data.verification import OURS, changes, command_to_prepare_again
from mlebench.engine.progress import SILENT, Progress
from mlebench.registry import Competition, Registry

KILLED = "killed"


class PrepareOutcome(NamedTuple):
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
    source: RawSource,
    options: Options,
    *,
    jobs: int = 1,
    overwrite_leaderboard: bool = False,
    progress: Mapping[str, Progress] | None = None,
) -> Iterator[PrepareOutcome]:
    """Prepare competitions, `jobs` at a time; outcomes come as they end. `progress` has an object for each id.

    With fewer competitions than jobs, each gets more threads. Several competitions always run in separate processes,
    even one at a time: code that ends its process, or is killed for lack of memory, does not end the others.
    """
    trackers = progress or {}
    arguments = (Registry(registry.get_data_dir(), registry.profile), source, options, overwrite_leaderboard)
    threads = jobs // max(1, min(jobs, len(ids)))
    if len(ids) <= 1:
        _use_threads(threads)
        for id in ids:
            yield _prepare_one(id, *arguments, progress=trackers.get(id, SILENT))
        return
    with Calls(jobs) as calls:

        def begin(id: str) -> Future[PrepareOutcome]:
            tracker = trackers.get(id)
            listener = (lambda event: tracker.tell(*event)) if tracker else None
            work = id, arguments, threads, tracker is not None
            return calls.submit(call, _prepare_isolated, work, preload=["mlebench.data.preload"], listener=listener)

        begun = {begin(id): id for id in ids}
        killed = []
        for future in as_completed(begun):
            outcome = _outcome(begun[future], future)
            if outcome.status == KILLED and jobs > 1:
                killed.append(outcome.id)
            else:
                yield outcome
        for id in killed:  # alone, it may have enough memory
            yield _outcome(id, begin(id))


def _outcome(id: str, future: Future[PrepareOutcome]) -> PrepareOutcome:
    try:
        return future.result()
    except IsolatedCallError as error:
        return PrepareOutcome(id, KILLED, str(error))


class _CallerProgress(Progress):
    """In a separate process: tells the caller."""

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        notify((stage, done, total))


def _use_threads(count: int) -> None:
    # Imported here because it loads libraries that a process that only waits does not need.
    from mlebench.engine.threads import use_threads

    use_threads(count)


def _prepare_isolated(work: tuple[str, tuple[Any, ...], int, bool]) -> PrepareOutcome:
    id, arguments, threads, reports_progress = work
    _use_threads(threads)
    logging.disable(logging.INFO)
    outcome = _prepare_one(id, *arguments, progress=_CallerProgress() if reports_progress else SILENT)
    return outcome._replace(error=None)  # its class may be the competition's own, which our caller cannot load


def _reservations(competition: Competition, options: Options) -> str:
    """Why existing prepared data may differ from what would be prepared now."""
    head = read_manifest_head(competition)
    if head is None:
        return "by another program; `mlebench verify` checks it"
    changed_files = changes(competition)
    command = command_to_prepare_again(competition)
    if options.original_description and head.description == OURS:
        changed_files.append(f"{paths.DESCRIPTION} is ours")
        command += " --description original"
    return f"but {', and '.join(changed_files)}; `{command}` prepares it again" if changed_files else ""


def _prepare_one(
    id: str, registry: Registry, source: RawSource, options: Options, overwrite_leaderboard: bool, progress: Progress
) -> PrepareOutcome:
    try:
        competition = registry.get_competition(id)
        if overwrite_leaderboard:
            ensure_leaderboard_exists(competition, force=True)
        if prepare(competition, source, options, progress):
            return PrepareOutcome(id, "prepared")
        return PrepareOutcome(id, "already prepared", _reservations(competition, options))
    except RulesNotAcceptedError as error:
        return PrepareOutcome(id, "rules not accepted", str(error), error)
    except CompetitionError as error:
        return PrepareOutcome(id, "failed", f"{id}: {str(error).removeprefix(f'{id}: ')}")
    except PrerequisiteError as error:
        return PrepareOutcome(id, "failed", str(error), error)
    except Exception:
        return PrepareOutcome(id, "bug", traceback.format_exc())
