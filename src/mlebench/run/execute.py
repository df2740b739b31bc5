"""`mlebench run exec`: one run, from whatever state its folder is in to a final one.

The command is idempotent. It may be killed at any point, started twice at once, or restarted on another host: at most
one result counts, and what each attempt left is kept. Once an agent has ended, all that is left to do is to store and
grade what it left; if that fails, its working folder is kept and the command can be repeated.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mlebench.agents import Agent, install_fault, load_agent
from mlebench.core import leases, paths
from mlebench.core.errors import PrerequisiteError, SandboxError, StorageError
from mlebench.core.files import require_free_space
from mlebench.core.leases import LeaseLostError
from mlebench.core.os_errors import OF_DISKS, reason_of
from mlebench.core.outcomes import AGENT_ERROR, CANCELLED, FINISHED, INFRA_ERROR
from mlebench.core.processes import Process
from mlebench.data.open_runs import mark_open
from mlebench.data.state import data_identity, require_prepared, source_kind
from mlebench.records import now
from mlebench.records.conditions import run_conditions
from mlebench.records.run import RunConditions
from mlebench.records.run_groups import Run, limits_of
from mlebench.registry import Competition
from mlebench.run import hardware, hosts
from mlebench.run.agent_watch import AgentWatch
from mlebench.run.full_disk import DiskFilledError, charged_for_uploads
from mlebench.run.gpus import GpuLease
from mlebench.run.layout import MODEL_PORT, make_task, with_proxies
from mlebench.run.model_usage import open_model, unsealed_by
from mlebench.run.packages import PORT, open_packages, with_packages
from mlebench.run.publish import archive_leftovers
from mlebench.run.python_environment import HOST_FOLDERS
from mlebench.run.recorder import RunRecorder
from mlebench.run.retry_rules import (
    FINAL,
    MAY_BE_RETRIED,
    NOT_STORED,
    AttemptVerdict,
    failed_before_start,
    is_exhausted,
    lost_by,
    result_counts,
)
from mlebench.run.signals import on_stop_signal, stop_signals_blocked
from mlebench.run.snapshots import Snapshots
from mlebench.run.validator_proxy import ValidatorProxy, remove_proxy
from mlebench.sandbox import UNISOLATED, Sandbox, sandbox_named
from mlebench.sandbox.base import Task
from mlebench.sandbox.session import SupervisorClient, TaskOutcome, read_outcome

logger = logging.getLogger(__name__)


def execute(folder: Path, gpus: GpuLease | None = None) -> int:
    """Do a run. The exit code says whether its state is final."""
    run = Run.read(folder)
    if run.record.is_final:
        return FINAL
    if reason := _reason_to_wait(run.paths.group):
        logger.warning("%s: %s", folder.name, reason)
        return MAY_BE_RETRIED
    try:
        with _failures_of_host(run), _leased(run) as recorder:
            if recorder:
                return _continue(recorder, gpus or GpuLease())
        logger.info("%s is being worked on by another process", folder.name)
        return MAY_BE_RETRIED
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


@contextlib.contextmanager
def _leased(run: Run, *, wait: bool = True) -> Iterator[RunRecorder | None]:
    """Hold a run's lease, and yield its recorder; None if another process holds the lease."""
    lease = leases.acquire(run.paths.leases, wait=wait)
    if lease is None:
        yield None
        return
    try:
        yield RunRecorder(Run.read(run.paths.root), lease)
    finally:
        lease.release()


def abandon(folder: Path, reason: str) -> bool:
    """Give up on a run that this program cannot do; False if that has to wait, or would lose an agent's work."""
    try:
        with _leased(Run.read(folder), wait=False) as recorder:
            if recorder is None:
                return False
            if recorder.complete_publication():
                return True
            if unstored_result(recorder.run):
                return False
            if recorder.open_attempt:
                _close_interrupted(recorder)
            recorder.give_up(reason)
    except (LeaseLostError, SandboxError, StorageError):
        return False
    return True


def unstored_result(run: Run) -> Path | None:
    """The working folder of a run whose agent has ended but whose result could not be stored or graded yet."""
    attempt = run.record.last_attempt
    if run.record.is_final or not attempt or not attempt.is_open:
        return None
    work = run.paths.group.work(attempt.token)
    try:
        outcome = read_outcome(work)
    except (OSError, StorageError):  # for all we know, the agent has ended
        return work
    return work if outcome and result_counts(outcome.ended) else None


def _continue(recorder: RunRecorder, gpus: GpuLease) -> int:
    """Do a run whose lease is ours: finish what an earlier attempt left, or make another attempt."""
    if recorder.complete_publication():
        return FINAL
    if recorder.open_attempt and (code := _close_interrupted(recorder)) is not None:
        return code
    if is_exhausted(recorder.attempts):
        recorder.give_up(f"given up: {recorder.last_attempt.detail}")
        return FINAL
    limits = limits_of(recorder.group)
    require_free_space(recorder.group.paths.root, limits.disk, limits.inodes)
    archive_leftovers(recorder.run)
    try:
        agent, competition, sandbox = _load(recorder)
    except PrerequisiteError as error:  # this node cannot do it; another may
        recorder.begin_attempt()
        return _failed(recorder, str(error))
    recorder.begin_attempt()
    # While a run is open, every grade for its competition says so, to the person grading and to later readers.
    mark_open(competition, recorder.run.paths.root, recorder.lease.token)
    return _Attempt(recorder, agent, competition, sandbox, gpus).make()


def _load(recorder: RunRecorder) -> tuple[Agent, Competition, Sandbox]:
    record = recorder.group.record
    agent = load_agent(record.agent_source, record.agent_command, record.agent_options)
    if agent.identity != record.agent.identity:
        raise PrerequisiteError(f"{agent.folder} has changed since these runs were planned: plan them again")
    if fault := install_fault(agent, has_environment=record.environment is not None):
        raise PrerequisiteError(f"agent {agent.name} is {fault}")
    for folder in HOST_FOLDERS:
        folder.require_unchanged(record)
    competition = recorder.competition
    require_prepared(competition)
    return agent, competition, UNISOLATED() if agent.host_only else sandbox_named(record.sandbox)


def _close_interrupted(recorder: RunRecorder) -> int | None:
    """Finish an attempt whose runner was killed, or could not store its result.

    If its agent had ended, publish that; the code says how that went. Otherwise close the attempt.
    """
    attempt, record = recorder.last_attempt, recorder.group.record
    if attempt.supervisor:
        _await_end(attempt.supervisor)
    if record.sandbox != "host":
        sandbox_named(record.sandbox).remove_leftovers(attempt.token)
        remove_proxy(attempt.token)
    work = recorder.group.paths.work(attempt.token)
    recorder.unstage_results(work)
    outcome = read_outcome(work)
    verdict = AttemptVerdict.on(outcome.ended if outcome else CANCELLED, None, lost_by(attempt))
    if outcome and verdict.counts:
        return _publish(recorder, recorder.competition, outcome, recorder.run.record.conditions, work)
    is_lost = verdict.ended == CANCELLED
    detail = "the runner was killed" if is_lost else outcome and outcome.detail
    recorder.close_attempt(verdict.ended, detail, outcome=outcome, interrupted_by=verdict.interrupted_by)
    return None


def _publish(
    recorder: RunRecorder, competition: Competition, outcome: TaskOutcome, conditions: RunConditions, work: Path
) -> int:
    try:
        recorder.publish(competition, outcome, conditions, work)
    except DiskFilledError as error:
        return _failed(recorder, str(error), outcome)
    return FINAL


def _failed(recorder: RunRecorder, reason: str, outcome: TaskOutcome | None = None) -> int:
    """The infrastructure failed: try again, but not forever."""
    logger.warning("%s: %s", recorder.run.paths.root.name, reason)
    recorder.close_attempt(INFRA_ERROR, reason, outcome=outcome)
    if failed_before_start(recorder.last_attempt):
        hosts.note_failure(recorder.group.paths, reason)
    if not is_exhausted(recorder.attempts):
        return MAY_BE_RETRIED
    recorder.give_up(reason)
    return FINAL


class _Attempt:
    """One attempt, from its sandbox to its verdict."""

    def __init__(self, recorder: RunRecorder, agent: Agent, competition: Competition, sandbox: Sandbox, gpus: GpuLease):
        self._recorder, self._gpus = recorder, gpus
        self._agent, self._competition, self._sandbox = agent, competition, sandbox
        self._group, self._lease = recorder.group, recorder.lease
        self._watch = AgentWatch(recorder.run, recorder.group, recorder.lease)

    def make(self) -> int:
        # SIGTERM and Ctrl-C end the attempt cleanly: what it has is kept, and it can be repeated.
        with on_stop_signal(self._watch.stop):
            try:
                return self._host_only() if self._agent.host_only else self._sandboxed()
            except (SandboxError, PrerequisiteError) as error:
                if by := self._watch.late_stop():
                    return self._stopped(by)
                return _failed(self._recorder, str(error))

    def _host_only(self) -> int:
        """Run an agent of ours that sees the answers, to test the benchmark itself."""
        work = self._group.paths.work(self._lease.token)
        begun = time.monotonic()
        submission = work / "home" / paths.SUBMISSION / f"{paths.SUBMISSION}.csv"
        submission.parent.mkdir(parents=True)
        conditions = RunConditions(sandbox="host", sealed=False, unsealed_by=unsealed_by(self._group.record))
        self._recorder.note_start(None, conditions)
        self._agent.submit(self._competition, submission)
        outcome = TaskOutcome(FINISHED, None, 0, time.monotonic() - begun)
        self._watch.note_start()
        return _publish(self._recorder, self._competition, outcome, conditions, work)

    def _sandboxed(self) -> int:
        sandbox, token = self._sandbox, self._lease.token
        port, model_port, packages_port = (None, MODEL_PORT, PORT) if sandbox.is_isolated else _free_ports()
        run = self._recorder.run
        task = make_task(self._group, run, self._agent, self._competition, sandbox, token, self._gpus, port)
        if fault := sandbox.fault(task):
            raise SandboxError(f"the sandbox {sandbox.name} cannot be used on this host: {fault}")
        public = task.binds[0].source
        with (
            ValidatorProxy(token, self._competition, public, task.hidden, task.limits.disk) as proxy,
            open_model(self._group.record, task) as model,
            open_packages(self._group.record, task) as packages,
        ):
            task = with_proxies(task, self._agent, proxy.socket, model, model_port)
            task = with_packages(task, sandbox, packages, packages_port)
            conditions = self._conditions(task, proxy)
            with self._lease.renewed():  # an image may have much to copy
                launch = sandbox.launch(task)
            session = SupervisorClient(task, launch, lambda pid: self._recorder.note_start(pid, conditions))
            snapshots = Snapshots(task, self._recorder.last_attempt.agent_started_at or now())
            with stop_signals_blocked():
                outcome = self._watch.wait(session, proxy, model, snapshots)
            if model and model.has_died and outcome.ended in (CANCELLED, AGENT_ERROR):
                outcome = replace(outcome, ended=INFRA_ERROR, detail="the gateway to the model died")
            if packages and packages.has_died and outcome.ended == AGENT_ERROR:
                outcome = replace(outcome, ended=INFRA_ERROR, detail="the index of packages died")
            if proxy.has_filled_disk:
                outcome = charged_for_uploads(outcome)
        return self._judge(outcome, conditions, task.work)

    def _judge(self, outcome: TaskOutcome, conditions: RunConditions, work: Path) -> int:
        """Publish what the agent left, or close the attempt so that the run goes on."""
        may_be_stopped = outcome.ended in (AGENT_ERROR, INFRA_ERROR)
        by = self._watch.late_stop() if may_be_stopped else self._watch.stopped_by
        verdict = AttemptVerdict.on(outcome.ended, by)
        if verdict.counts:
            self._watch.note_start()
            return _publish(self._recorder, self._competition, outcome, conditions, work)
        if may_be_stopped and by:
            return self._stopped(by, outcome)
        if verdict.ended == INFRA_ERROR:
            self._sandbox.remove_leftovers(self._lease.token)
            return _failed(self._recorder, outcome.detail or "the sandbox failed", outcome)
        detail = (by and hosts.scheduler_reason()) or outcome.detail
        self._recorder.close_attempt(CANCELLED, detail, outcome=outcome, interrupted_by=verdict.interrupted_by)
        return MAY_BE_RETRIED

    def _stopped(self, by: str, outcome: TaskOutcome | None = None) -> int:
        """Close the attempt: it died of a signal meant for us."""
        self._sandbox.remove_leftovers(self._lease.token)
        detail = hosts.scheduler_reason() or "it was told to stop"
        self._recorder.close_attempt(CANCELLED, detail, outcome=outcome, interrupted_by=by)
        return MAY_BE_RETRIED

    def _conditions(self, task: Task, proxy: ValidatorProxy) -> RunConditions:
        """What the run actually gets, for its record."""
        record = self._group.record
        unsealed = unsealed_by(record)
        this_machine = hardware.describe()
        return RunConditions(
            sandbox=self._sandbox.name,
            **self._sandbox.conditions(task),
            sealed=not unsealed,
            unsealed_by=unsealed,
            network=task.network,
            limits=record.limits,
            gpus=list(task.gpus),
            data=data_identity(self._competition),
            source=source_kind(self._competition),
            **run_conditions(record),
            machine=None if this_machine == record.machine else this_machine,
            validator=proxy.sandbox.name,
        )


def _await_end(supervisor: Process) -> None:
    """Wait for a supervisor, which ends its sandbox once its runner has ended; one on another host has had time to."""
    deadline = time.monotonic() + 30
    while supervisor.is_here and supervisor.is_alive:
        if time.monotonic() > deadline:
            raise SandboxError(f"the sandbox of an earlier attempt is still running: process {supervisor.pid}")
        time.sleep(0.02)


def _free_ports() -> tuple[int, int, int]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        first, second, third = (server.getsockname()[1] for server in servers)
        return first, second, third
