"""What is recorded of a run while it is done: its attempts, then its result. Only the holder of the lease records."""

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, StorageError
from mlebench.core.leases import Lease
from mlebench.core.outcomes import INFRA_ERROR, MODEL_UNAVAILABLE
from mlebench.core.processes import Process, process_start
from mlebench.data.open_runs import unmark_open
from mlebench.data.state import read_manifest_head
from mlebench.records import now
from mlebench.records.run import NONE, PLANNED, PRESENT, RUNNING, Attempt, RunConditions
from mlebench.records.run_groups import Group, Run
from mlebench.records.usage import read_package_usage, read_usage
from mlebench.registry import Competition, Registry
from mlebench.run import hosts
from mlebench.run.crash import with_last_words
from mlebench.run.full_disk import DiskFilledError, has_filled_disk, require_disk_was_not_filled
from mlebench.run.grading import grade_run
from mlebench.run.model_usage import with_outage
from mlebench.run.publish import (
    collect_outputs,
    finalize,
    is_published,
    make_room,
    publish_result,
    read_result,
    stage,
    unstage,
)
from mlebench.run.retry_rules import count_starts, scheduler_job
from mlebench.sandbox.collect import CopyLimits, remove_tree
from mlebench.sandbox.session import TaskOutcome, forget_outcome


class RunRecorder:
    """A run and its record, written to disk at each step."""

    def __init__(self, run: Run, lease: Lease):
        self.run = run
        self.lease = lease
        self.group = Group.read(run.paths.group.root)

    @property
    def competition(self) -> Competition:
        record = self.group.record
        return Registry(record.data_dir, record.profile).get_competition(self.run.record.competition)

    @property
    def attempts(self) -> list[Attempt]:
        return self.run.record.attempts

    @property
    def last_attempt(self) -> Attempt:
        """The last attempt of a run that has one."""
        return self.attempts[-1]

    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt in progress, or what is left of one whose runner was killed."""
        attempt = self.run.record.last_attempt
        return attempt if attempt and attempt.is_open else None

    def begin_attempt(self) -> None:
        """Record a new attempt, whose token is the lease's."""
        attempt = Attempt(
            number=len(self.attempts) + 1,
            token=self.lease.token,
            host=socket.gethostname(),
            node=os.environ.get(hosts.NODE_VARIABLE),
            job=scheduler_job(),
            started_at=now(),
        )
        attempts = [*self.attempts, attempt]
        self.run = self.run.write(
            state=RUNNING, started_at=attempt.started_at, attempts=attempts, starts=count_starts(attempts)
        )

    def note_start(self, supervisor_pid: int | None, conditions: RunConditions) -> None:
        """Record that an agent is about to be started, with all that is needed to publish its result if we are killed.

        If we are, the next runner waits for the supervisor, which ends the sandbox.
        """
        supervisor = None
        if supervisor_pid is not None:
            supervisor = replace(Process.current(), pid=supervisor_pid, started=process_start(supervisor_pid) or 0)
        attempt = msgspec.structs.replace(self.last_attempt, agent_started_at=now(), supervisor=supervisor)
        self._update_attempt(attempt, conditions=conditions)

    def close_attempt(
        self,
        ended: str,
        detail: str | None,
        *,
        outcome: TaskOutcome | None = None,
        interrupted_by: str | None = None,
    ) -> None:
        """Keep what an attempt left that does not count, and record how it ended: the run is planned again."""
        token, work = self.last_attempt.token, self.group.paths.work(self.last_attempt.token)
        attempt = msgspec.structs.replace(
            self.last_attempt,
            ended=ended,
            detail=detail,
            ended_at=now(),
            model=read_usage(work),
            packages=read_package_usage(work),
            interrupted_by=interrupted_by,
            seconds=round(outcome.seconds, 3) if outcome else None,
            agent_started_at=None if outcome and not outcome.agent_started else self.last_attempt.agent_started_at,
        )
        forget_outcome(work)  # it does not count, even if we are killed now
        if work.is_dir():
            collect_outputs(work, self.run.paths.attempt(len(self.attempts)))
        self._remove_traces(token)
        self._update_attempt(attempt, state=PLANNED)

    def publish(self, competition: Competition, outcome: TaskOutcome, conditions: RunConditions, work: Path) -> None:
        """Store and grade what an agent left, and end the run.

        If that fails, the working folder has everything, and the run goes on: StorageError or OSError, or
        DiskFilledError if the agent may try again.
        """
        if has_filled_disk(outcome) and not self.group.record.retain:
            with self.lease.renewed():
                make_room(work)
        with self._staged(work) as staged, self.lease.renewed():
            self._fill_and_publish(staged, competition, outcome, conditions, work)
        self._finalize()

    def give_up(self, reason: str) -> None:
        """Publish that a run failed through no fault of the agent."""
        end = {"ended": INFRA_ERROR, "detail": reason, "ended_at": now()}
        publish_result(self.run, stage(self.run, self.lease), self.lease, state="ended", submission=NONE, **end)
        self._finalize()

    def complete_publication(self) -> bool:
        """Return True if the run is final, completing an interrupted publication first."""
        if is_published(self.run) and self.run.record.state != PLANNED:
            self._finalize()
        return self.run.record.is_final

    def unstage_results(self, work: Path) -> None:
        """Undo what killed runners had staged."""
        for staged in self.run.paths.root.glob(f"{self.run.paths.result.name}.*"):
            unstage(staged, work)

    def _update_attempt(self, attempt: Attempt, **changes: Any) -> None:
        attempts = [*self.attempts[:-1], attempt]
        self.run = self.run.write(attempts=attempts, starts=count_starts(attempts), **changes)

    @contextlib.contextmanager
    def _staged(self, work: Path) -> Iterator[Path]:
        """A folder in which to assemble the result; if that fails, what was moved goes back."""
        staged = stage(self.run, self.lease)
        try:
            yield staged
        except (PrerequisiteError, StorageError, OSError, DiskFilledError) as error:  # not if the lease is lost
            with contextlib.suppress(OSError):
                unstage(staged, work)
            if isinstance(error, PrerequisiteError):
                raise StorageError(f"the submission cannot be graded now: {error}") from error
            raise

    def _fill_and_publish(
        self, staged: Path, competition: Competition, outcome: TaskOutcome, conditions: RunConditions, work: Path
    ) -> None:
        usage = read_usage(work)
        outcome = with_outage(with_last_words(outcome, work), self.group.record, work)
        needed = f"{paths.SUBMISSION}.csv" if has_filled_disk(outcome) else None
        collected = collect_outputs(work, staged, CopyLimits(needed=needed))
        submission = staged / paths.SUBMISSION / f"{paths.SUBMISSION}.csv"
        present = submission.is_file()
        counts = outcome.ended != MODEL_UNAVAILABLE
        report = grade_run(submission, competition, self.run, self.group) if counts else None
        require_disk_was_not_filled(outcome, report)
        conditions = msgspec.structs.replace(
            conditions,
            kept=outcome.enforced_by,
            used=outcome.used,
            collected=collected.to_record(),
            data_unchanged=None if conditions.sealed else _data_is_unchanged(competition),
        )
        end: dict[str, Any] = {"ended": outcome.ended, "detail": outcome.detail, "ended_at": now(), "model": usage}
        end["packages"] = read_package_usage(work)
        end["seconds"] = round(outcome.seconds, 3)
        publish_result(
            self.run,
            staged,
            self.lease,
            state="ended",
            **end,
            submission=PRESENT if present else NONE,
            report=report,
            attempts=[*self.attempts[:-1], msgspec.structs.replace(self.last_attempt, **end)],
            gpu_hours=round(outcome.seconds * len(conditions.gpus) / 3600, 6),
            conditions=conditions,
        )

    def _finalize(self) -> None:
        """End a run whose result is published; nothing looks for the traces of its attempt after that."""
        read_result(self.run)  # it may be damaged: then the working folder is still needed
        if attempt := self.run.record.last_attempt:
            self._remove_traces(attempt.token)
        self.run = finalize(self.run)

    def _remove_traces(self, token: str) -> None:
        """Called before the record says that an attempt has ended: afterwards nothing looks for its traces."""
        with contextlib.suppress(PrerequisiteError):
            unmark_open(self.competition, token)
        paths.spare_outcome(token).unlink(missing_ok=True)
        if not self.group.record.retain:
            remove_tree(self.group.paths.work(token))
            with contextlib.suppress(OSError):
                self.group.paths.work(token).parent.rmdir()


def _data_is_unchanged(competition: Competition) -> bool | None:
    """Whether prepared data is still what was recorded; None if nothing was."""
    from mlebench.data.verification import verify

    return None if read_manifest_head(competition) is None else not verify(competition)
