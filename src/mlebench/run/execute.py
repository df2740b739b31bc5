"""`mlebench run exec`: one run, from whatever state its folder is in to a final one.

The command is idempotent. It may be killed at any point, started twice at once, or restarted on another host: at most
one result counts, and what each attempt left is kept. Once an agent has ended, all that is left to do is to store and
grade what it left; if that fails, its working folder is kept and the command can be repeated.
"""

import contextlib
import logging
import os
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from mlebench.agents import Agent, load_agent, venv_fault
from mlebench.core import leases, paths
from mlebench.core.errors import PrerequisiteError, SandboxError, StorageError
from mlebench.core.files import require_free_space
from mlebench.core.leases import Lease, LeaseLostError
from mlebench.core.os_errors import OF_DISKS, reason_of
from mlebench.core.outcomes import (
    AGENT_ERROR,
    CANCELLED,
    FINISHED,
    INFRA_ERROR,
    MODEL_UNAVAILABLE,
    NOT_THE_AGENTS_FAULT,
)
from mlebench.core.processes import Process, process_start
from mlebench.data.open_runs import mark_open, unmark_open
from mlebench.data.state import data_identity, read_manifest_head, require_prepared, source_kind
from mlebench.gateway.proxy import GatewayProxy
from mlebench.records import now
from mlebench.records.conditions import run_conditions
from mlebench.records.run import NONE, PLANNED, PRESENT, RUNNING, Attempt, RunConditions
from mlebench.records.run_groups import Group, Run, limits_of
from mlebench.records.usage import read_usage
from mlebench.registry import Competition, Registry
from mlebench.run import hosts, knowledge, machine
from mlebench.run.attempts import (
    LOST,
    SIGNAL,
    count_starts,
    failed_before_start,
    interrupted_by,
    is_exhausted,
    scheduler_job,
)
from mlebench.run.crash import with_last_words
from mlebench.run.full_disk import DiskFilledError, charged_for_uploads, has_filled_disk, require_disk_was_not_filled
from mlebench.run.gpus import GpuLease
from mlebench.run.grading import grade_run
from mlebench.run.layout import MODEL_PORT, make_task, with_proxies
from mlebench.run.model_usage import open_model, unsealed_by, with_outage
from mlebench.run.publish import (
    archive_leftovers,
    collect_outputs,
    finalize,
    is_published,
    make_room,
    publish,
    read_result,
    stage,
    unstage,
)
from mlebench.run.signals import (
    PARENT_VARIABLE,
    STARTER,
    next_sender,
    on_stop_signal,
    parent_pipe,
    stop_signals_blocked,
)
from mlebench.run.snapshots import Snapshots
from mlebench.run.validator_proxy import ValidatorProxy, remove_proxy
from mlebench.sandbox import UNISOLATED, Sandbox, sandbox_named
from mlebench.sandbox.base import Task
from mlebench.sandbox.collect import Room, remove_tree
from mlebench.sandbox.session import Outcome, Session, forget_outcome, read_outcome
from mlebench.sandbox.supervisor import SETUP
from mlebench.sandbox.usage import descendants

logger = logging.getLogger(__name__)

FINAL, MAY_BE_RETRIED, CANNOT_WORK, NOT_STORED = 0, 75, 2, 74  # exit codes
TICK = 0.2


def execute(folder: Path, gpus: GpuLease | None = None) -> int:
    """Do a run. The exit code says whether its state is final."""
    run = Run.read(folder)
    if run.record.is_final:
        return FINAL
    if reason := _reason_to_wait(run.paths.group):
        logger.warning("%s: %s", folder.name, reason)
        return MAY_BE_RETRIED
    try:
        with _failures_of_host(run):
            return _execute(run, gpus or GpuLease())
    except (LeaseLostError, SandboxError) as error:
        logger.warning("%s: %s", folder.name, error)
        return MAY_BE_RETRIED
    except StorageError as error:
        logger.error("%s: %s", folder.name, error)
    except OSError as error:
        if error.errno not in OF_DISKS and not unstored_result(Run.read(folder)):
            raise
        logger.error("%s: %s: %s", folder.name, error.filename or "cannot write", reason_of(error))
    if work := unstored_result(Run.read(folder)):
        logger.error("%s: the agent has ended; what it left is kept in %s", folder.name, work)
    return NOT_STORED


def _reason_to_wait(group: paths.GroupPaths) -> str | None:
    """Why no run of a group may be started on this host until somebody resumes the group."""
    if group.cancelled.exists():
        return "the group was cancelled; `mlebench run --resume` continues it"
    host = hosts.this_host()
    reason = hosts.stopped_hosts(group).get(host)
    return reason and hosts.stop_line(host, reason)


@contextlib.contextmanager
def _failures_of_host(run: Run) -> Iterator[None]:
    """Hold against this host whatever goes wrong before an agent has started."""
    try:
        yield
    except LeaseLostError:
        raise
    except Exception as error:
        attempt = Run.read(run.paths.root).record.last_attempt
        if not attempt or not attempt.is_open or attempt.agent_started_at is None:
            hosts.note_failure(run.paths.group, str(error) or type(error).__name__)
        raise


def _execute(run: Run, gpus: GpuLease) -> int:
    lease = leases.acquire(run.paths.leases)
    if lease is None:
        logger.info("%s is being worked on by another process", run.paths.root.name)
        return MAY_BE_RETRIED
    try:
        return _Execution(Run.read(run.paths.root), lease, gpus).go()
    finally:
        lease.release()


def abandon(folder: Path, reason: str) -> bool:
    """Give up on a run that this program cannot do; False if that has to wait, or would lose an agent's work."""
    lease = leases.acquire(Run.read(folder).paths.leases, wait=False)
    if lease is None:
        return False
    try:
        _Execution(Run.read(folder), lease, GpuLease()).abandon(reason)
    except (LeaseLostError, SandboxError, StorageError):
        return False
    finally:
        lease.release()
    return True


def unstored_result(run: Run) -> Path | None:
    """The working folder of a run whose agent has ended but whose result could not be stored or graded yet."""
    attempt = run.record.last_attempt
    if run.record.is_final or not attempt or not attempt.is_open:
        return None
    work = run.paths.group.work(attempt.token)
    try:
        return work if _has_ended(read_outcome(work)) else None
    except (OSError, StorageError):  # for all we know, it has
        return work


def _has_ended(outcome: Outcome | None) -> TypeGuard[Outcome]:
    """Whether an agent has ended or reached a limit, so that it is never started again for this run."""
    return outcome is not None and outcome.ended not in NOT_THE_AGENTS_FAULT


class _Execution:
    """One attempt at a run, by the holder of its lease."""

    def __init__(self, run: Run, lease: Lease, gpus: GpuLease):
        self.run = run
        self.lease = lease
        self.gpus = gpus
        self.group = Group.read(run.paths.group.root)
        self.stopping = False
        self._stopped_by = SIGNAL
        self._has_noted_start = False

    def go(self) -> int:
        if self._is_finalized():
            return FINAL
        if self._has_open_attempt and (code := self._close_interrupted()) is not None:
            return code
        if is_exhausted(self.run.record.attempts):
            return self._give_up(f"given up: {self._attempt.detail}")
        limits = limits_of(self.group)
        require_free_space(self.group.paths.root, limits.disk, limits.inodes)
        archive_leftovers(self.run)
        try:
            agent, competition, sandbox = self._load()
        except PrerequisiteError as error:  # this node cannot do it; another may
            self._begin()
            return self._failed(str(error))
        self._begin()
        # While a run is open, every grade for its competition says so, to the person grading and to later readers.
        mark_open(competition, self.run.paths.root, self.lease.token)
        # SIGTERM and Ctrl-C end the attempt cleanly: what it has is kept, and it can be repeated.
        with on_stop_signal(lambda: setattr(self, "stopping", True)):
            try:
                if agent.host_only:
                    return self._host_only(agent, competition)
                return self._sandboxed(agent, competition, sandbox)
            except (SandboxError, PrerequisiteError) as error:
                return self._stopped(sandbox) if self._was_told_to_stop() else self._failed(str(error))

    def abandon(self, reason: str) -> None:
        if self._is_finalized():
            return
        if work := unstored_result(self.run):
            raise StorageError(f"the agent has ended; what it left is kept in {work}")
        if self._has_open_attempt:
            self._close_interrupted()
        self._give_up(reason)

    def _is_finalized(self) -> bool:
        """Return True if the run is final, completing an interrupted publish first."""
        if is_published(self.run) and self.run.record.state != PLANNED:
            self._finalize()
        return self.run.record.is_final

    def _finalize(self) -> None:
        """End a run whose result is published; nothing looks for the traces of its attempt after that."""
        read_result(self.run)  # it may be damaged: then the working folder is still needed
        if attempt := self.run.record.last_attempt:
            self._remove_traces(attempt.token)
        self.run = finalize(self.run)

    def _load(self) -> tuple[Agent, Competition, Sandbox]:
        record = self.group.record
        agent = load_agent(record.agent_source, record.agent_command, record.agent_options)
        if agent.identity != record.agent.identity:
            raise PrerequisiteError(f"{agent.folder} has changed since these runs were planned: plan them again")
        if fault := venv_fault(agent):
            raise PrerequisiteError(f"agent {agent.name} is {fault}")
        knowledge.require_unchanged(record)
        competition = Registry(record.data_dir, record.profile).get_competition(self.run.record.competition)
        require_prepared(competition)
        return agent, competition, UNISOLATED() if agent.host_only else sandbox_named(record.sandbox)

    def _begin(self) -> None:
        attempt = Attempt(
            number=len(self.run.record.attempts) + 1,
            token=self.lease.token,
            host=socket.gethostname(),
            node=os.environ.get(hosts.NODE_VARIABLE),
            job=scheduler_job(),
            started_at=now(),
        )
        attempts = [*self.run.record.attempts, attempt]
        self.run = self.run.write(
            state=RUNNING, started_at=attempt.started_at, attempts=attempts, starts=count_starts(attempts)
        )

    def _update_attempt(self, attempt: Attempt, **changes: Any) -> None:
        """Record what has become of the current attempt."""
        attempts = [*self.run.record.attempts[:-1], attempt]
        self.run = self.run.write(attempts=attempts, starts=count_starts(attempts), **changes)

    @property
    def _attempt(self) -> Attempt:
        return self.run.record.attempts[-1]

    @property
    def _has_open_attempt(self) -> bool:
        return bool(self.run.record.attempts) and self._attempt.is_open

    def _note_start(self, supervisor_pid: int | None, conditions: RunConditions) -> None:
        """Record that an agent is about to be started, with all that is needed to publish its result if we are killed.

        If we are, the next runner waits for the supervisor, which ends the sandbox.
        """
        supervisor = None
        if supervisor_pid is not None:
            supervisor = replace(Process.current(), pid=supervisor_pid, started=process_start(supervisor_pid) or 0)
        attempt = msgspec.structs.replace(self._attempt, agent_started_at=now(), supervisor=supervisor)
        self._update_attempt(attempt, conditions=conditions)

    def _close_interrupted(self) -> int | None:
        """Finish an attempt whose runner was killed, or could not store its result.

        If its agent had ended, publish that; the code says how that went. Otherwise close the attempt.
        """
        token = self._attempt.token
        if self._attempt.supervisor:
            _await_end(self._attempt.supervisor)
        if self.group.record.sandbox != "host":
            sandbox_named(self.group.record.sandbox).remove_leftovers(token)
            remove_proxy(token)
        work = self.group.paths.work(token)
        for staged in self.run.paths.root.glob(f"{self.run.paths.result.name}.*"):  # of any runner that was killed
            unstage(staged, work)
        outcome = read_outcome(work)
        if _has_ended(outcome):
            record = self.group.record
            competition = Registry(record.data_dir, record.profile).get_competition(self.run.record.competition)
            return self._publish(competition, outcome, self.run.record.conditions, work)
        if outcome and outcome.ended == INFRA_ERROR:  # and it could not be stored then
            self._keep_attempt(INFRA_ERROR, outcome.detail, outcome=outcome)
            return None
        self._keep_attempt(
            CANCELLED, "the runner was killed", outcome=outcome, interrupted_by=interrupted_by(self._attempt)
        )
        return None

    def _keep_attempt(
        self, ended: str, detail: str | None, *, outcome: Outcome | None = None, interrupted_by: str | None = None
    ) -> None:
        """Keep what an attempt left, and record how it ended."""
        token = self._attempt.token
        work = self.group.paths.work(token)
        attempt = msgspec.structs.replace(
            self._attempt,
            ended=ended,
            detail=detail,
            ended_at=now(),
            model=read_usage(work),
            interrupted_by=interrupted_by,
            seconds=round(outcome.seconds, 3) if outcome else None,
            agent_started_at=None if outcome and not outcome.agent_started else self._attempt.agent_started_at,
        )
        forget_outcome(work)  # it does not count, even if we are killed now
        if work.is_dir():
            collect_outputs(work, self.run.paths.attempt(len(self.run.record.attempts)))
        self._remove_traces(token)
        self._update_attempt(attempt, state=PLANNED)

    def _remove_traces(self, token: str) -> None:
        """Called before the record says that an attempt has ended: afterwards nothing looks for its traces."""
        record = self.group.record
        with contextlib.suppress(PrerequisiteError):
            unmark_open(Registry(record.data_dir, record.profile).get_competition(self.run.record.competition), token)
        paths.spare_outcome(token).unlink(missing_ok=True)
        if not record.retain:
            remove_tree(self.group.paths.work(token))
            with contextlib.suppress(OSError):
                self.group.paths.work(token).parent.rmdir()

    def _sandboxed(self, agent: Agent, competition: Competition, sandbox: Sandbox) -> int:
        token = self.lease.token
        port, model_port = (None, MODEL_PORT) if sandbox.is_isolated else _free_ports()
        task = make_task(self.group, self.run, agent, competition, sandbox, token, self.gpus, port)
        if fault := sandbox.fault(task):
            raise SandboxError(f"the sandbox {sandbox.name} cannot be used on this host: {fault}")
        public = task.binds[0].source
        with (
            ValidatorProxy(token, competition, public, task.hidden, task.limits.disk) as proxy,
            open_model(self.group.record, task) as model,
        ):
            task = with_proxies(task, agent, proxy.socket, model, model_port)
            conditions = self._conditions(competition, sandbox, task, proxy)
            with self.lease.renewed():  # an image may have much to copy
                launch = sandbox.launch(task)
            session = Session(task, launch, lambda pid: self._note_start(pid, conditions))
            with stop_signals_blocked():
                outcome = self._watch(session, proxy, model, Snapshots(task, self._attempt.agent_started_at or now()))
            if model and model.has_died and outcome.ended in (CANCELLED, AGENT_ERROR):
                outcome = replace(outcome, ended=INFRA_ERROR, detail="the gateway to the model died")
            if proxy.has_filled_disk:
                outcome = charged_for_uploads(outcome)
        if outcome.ended in (AGENT_ERROR, INFRA_ERROR) and self._was_told_to_stop():
            return self._stopped(sandbox, outcome)
        if outcome.ended == CANCELLED:
            by = self._stopped_by if self.stopping else LOST
            detail = (self.stopping and hosts.scheduler_reason()) or outcome.detail
            self._keep_attempt(CANCELLED, detail, outcome=outcome, interrupted_by=by)
            return MAY_BE_RETRIED
        if outcome.ended == INFRA_ERROR:
            sandbox.remove_leftovers(token)
            return self._failed(outcome.detail or "the sandbox failed", outcome)
        self._host_works()
        return self._publish(competition, outcome, conditions, task.work)

    def _was_told_to_stop(self) -> bool:
        """Whether a program died of a signal meant for us: schedulers signal every process."""
        time.sleep(TICK)  # our own signal may still be on its way
        return self.stopping

    def _stopped(self, sandbox: Sandbox, outcome: Outcome | None = None) -> int:
        sandbox.remove_leftovers(self.lease.token)
        detail = hosts.scheduler_reason() or "it was told to stop"
        self._keep_attempt(CANCELLED, detail, outcome=outcome, interrupted_by=self._stopped_by)
        return MAY_BE_RETRIED

    def _host_only(self, agent: Agent, competition: Competition) -> int:
        """Run an agent of ours that sees the answers, to test the benchmark itself."""
        work = self.group.paths.work(self.lease.token)
        begun = time.monotonic()
        submission = work / "home" / paths.SUBMISSION / f"{paths.SUBMISSION}.csv"
        submission.parent.mkdir(parents=True)
        conditions = RunConditions(sandbox="host", sealed=False, unsealed_by=unsealed_by(self.group.record))
        self._note_start(None, conditions)
        agent.submit(competition, submission)
        outcome = Outcome(FINISHED, None, 0, time.monotonic() - begun)
        self._host_works()
        return self._publish(competition, outcome, conditions, work)

    def _watch(
        self, session: Session, proxy: ValidatorProxy, model: GatewayProxy | None, snapshots: Snapshots
    ) -> Outcome:
        parent = parent_pipe()
        poll = select.poll()
        for descriptor in (session.descriptor(), *([parent] if parent is not None else [])):
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        begun, last_heartbeat = time.monotonic(), 0.0
        snapshots.start()
        try:
            while (outcome := session.poll()) is None:
                if parent is not None and any(number == parent for number, _ in poll.poll(TICK * 1000)):
                    self._stop(known=os.environ[PARENT_VARIABLE] == STARTER)
                    poll.unregister(parent)
                    parent = None
                elif parent is None:
                    poll.poll(TICK * 1000)
                self._heed_signals(session.pid)
                if self.stopping or (model and model.has_died):
                    session.stop()
                if time.monotonic() - last_heartbeat > 1:
                    last_heartbeat = time.monotonic()
                    session.heartbeat()
                    proxy.heartbeat()
                if self.lease.is_due:
                    self.lease.renew()
                    self._heed_group(begun)
        except BaseException:
            session.stop()
            while session.poll() is None:
                time.sleep(0.02)
            raise
        finally:
            with self.lease.renewed():
                snapshots.stop()
        with self.lease.renewed():
            snapshots.look()
        self._heed_signals(session.pid)
        return outcome

    def _heed_signals(self, supervisor: int) -> None:
        """Stop if a signal says so, but not if it is the agent's. A sender that has ended could have been the agent's.

        So could whoever killed our parent.
        """
        while (sender := next_sender()) is not None:
            if sender in descendants(supervisor):
                logger.warning("%s: a signal from the agent (process %d) is ignored", self.run.paths.root.name, sender)
            else:
                self._stop(known=sender == 0 or process_start(sender) is not None)

    def _stop(self, *, known: bool) -> None:
        """Stop the agent. If an agent that is not isolated may be behind it, the attempt counts as lost."""
        self.stopping = True
        if not known and not sandbox_named(self.group.record.sandbox).is_isolated:
            self._stopped_by = LOST

    def _heed_group(self, begun: float) -> None:
        """Stop if the group was cancelled, and tell it once that agents can start on this host."""
        if self.group.paths.cancelled.exists():
            self.stopping = True
        if time.monotonic() - begun > SETUP:
            self._host_works()

    def _host_works(self) -> None:
        if not self._has_noted_start:
            hosts.note_start(self.group.paths)
        self._has_noted_start = True

    def _conditions(
        self, competition: Competition, sandbox: Sandbox, task: Task, proxy: ValidatorProxy
    ) -> RunConditions:
        """What the run actually gets, for its record."""
        record = self.group.record
        unsealed = unsealed_by(record)
        this_machine = machine.describe()
        return RunConditions(
            sandbox=sandbox.name,
            **sandbox.conditions(task),
            sealed=not unsealed,
            unsealed_by=unsealed,
            network=task.network,
            limits=record.limits,
            gpus=list(task.gpus),
            data=data_identity(competition),
            source=source_kind(competition),
            **run_conditions(record),
            machine=None if this_machine == record.machine else this_machine,
            validator=proxy.sandbox.name,
        )

    def _publish(self, competition: Competition, outcome: Outcome, conditions: RunConditions, work: Path) -> int:
        """Store and grade what an agent left; if that fails, its working folder has everything, and the run goes on."""
        if has_filled_disk(outcome) and not self.group.record.retain:
            with self.lease.renewed():
                make_room(work)
        staged = stage(self.run, self.lease)
        try:
            with self.lease.renewed():
                self._stage_and_publish(staged, competition, outcome, conditions, work)
        except (PrerequisiteError, StorageError, OSError, DiskFilledError) as error:
            with contextlib.suppress(OSError):
                unstage(staged, work)
            if isinstance(error, DiskFilledError):
                return self._failed(str(error), outcome)
            if isinstance(error, PrerequisiteError):
                raise StorageError(f"the submission cannot be graded now: {error}") from error
            raise
        self._finalize()
        return FINAL

    def _stage_and_publish(
        self, staged: Path, competition: Competition, outcome: Outcome, conditions: RunConditions, work: Path
    ) -> None:
        usage = read_usage(work)
        outcome = with_outage(with_last_words(outcome, work), self.group.record, work)
        needed = f"{paths.SUBMISSION}.csv" if has_filled_disk(outcome) else None
        collected = collect_outputs(work, staged, Room(needed=needed))
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
        end["seconds"] = round(outcome.seconds, 3)
        publish(
            self.run,
            staged,
            self.lease,
            state="ended",
            **end,
            submission=PRESENT if present else NONE,
            report=report,
            attempts=[*self.run.record.attempts[:-1], msgspec.structs.replace(self._attempt, **end)],
            gpu_hours=round(outcome.seconds * len(conditions.gpus) / 3600, 6),
            conditions=conditions,
        )

    def _failed(self, reason: str, outcome: Outcome | None = None) -> int:
        """The infrastructure failed: try again, but not forever."""
        logger.warning("%s: %s", self.run.paths.root.name, reason)
        self._keep_attempt(INFRA_ERROR, reason, outcome=outcome)
        if failed_before_start(self._attempt):
            hosts.note_failure(self.group.paths, reason)
        return self._give_up(reason) if is_exhausted(self.run.record.attempts) else MAY_BE_RETRIED

    def _give_up(self, reason: str) -> int:
        """Publish that a run failed through no fault of the agent."""
        end = {"ended": INFRA_ERROR, "detail": reason, "ended_at": now()}
        publish(self.run, stage(self.run, self.lease), self.lease, state="ended", submission=NONE, **end)
        self._finalize()
        return FINAL


def _data_is_unchanged(competition: Competition) -> bool | None:
    """Whether prepared data is still what was recorded; None if nothing was."""
    from mlebench.data.verification import verify

    return None if read_manifest_head(competition) is None else not verify(competition)


def _await_end(supervisor: Process) -> None:
    """Wait for a supervisor, which ends its sandbox once its runner has ended; one on another host has had time to."""
    deadline = time.monotonic() + 30
    while supervisor.is_here and supervisor.is_alive:
        if time.monotonic() > deadline:
            raise SandboxError(f"the sandbox of an earlier attempt is still running: process {supervisor.pid}")
        time.sleep(0.02)


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


__all__ = ["CANNOT_WORK", "FINAL", "MAY_BE_RETRIED", "NOT_STORED", "abandon", "execute", "unstored_result"]
