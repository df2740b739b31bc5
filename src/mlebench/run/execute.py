"""`mlebench run exec`: one run, from whatever state its folder is in to a final one.

The command is idempotent. It may be killed at any point, started twice at once, or restarted on another host: at most
one result counts, and what each attempt left is kept.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mlebench import lease as leases
from mlebench.agents import Agent, load_agent, venv_fault
from mlebench.data.open_runs import mark_open, unmark_open
from mlebench.data.state import data_identity, read_manifest_head, require_prepared, source_kind
from mlebench.errors import PrerequisiteError, SandboxError
from mlebench.gateway.door import ModelDoor
from mlebench.lease import Lease, LeaseLostError
from mlebench.outcomes import AGENT_ERROR, CANCELLED, FINISHED, INFRA_ERROR
from mlebench.paths import SUBMISSION
from mlebench.processes import Process, process_start
from mlebench.records import now
from mlebench.registry import Competition, Registry
from mlebench.run import knowledge, machine
from mlebench.run.attempts import is_exhausted
from mlebench.run.door import ValidatorDoor, remove_door
from mlebench.run.gpus import Held
from mlebench.run.grading import grade_run
from mlebench.run.layout import MODEL_PORT, make_task, with_doors
from mlebench.run.model import model_use, open_model, tools_allowed
from mlebench.run.publish import gather, is_published, move_parts, publish, settle, stage, tidy
from mlebench.run.records import NONE, PLANNED, PRESENT, RUNNING, Group, Run
from mlebench.run.snapshots import Snapshots
from mlebench.sandbox import Sandbox, sandbox_named
from mlebench.sandbox.base import Task
from mlebench.sandbox.collect import remove_tree
from mlebench.sandbox.session import Outcome, Session

logger = logging.getLogger(__name__)

FINAL, MAY_BE_RETRIED, CANNOT_WORK = 0, 75, 2  # exit codes
TICK = 0.2
PARENT_VARIABLE = "MLEBENCH_PARENT_FD"  # a pipe that closes when the process that started us ends, or
STARTER = "starter"  # to watch our parent process instead


def execute(folder: Path, gpus: Held | None = None) -> int:
    """Do a run. The exit code says whether its state is final."""
    run = Run.read(folder)
    if run.record.is_final:
        return FINAL
    lease = leases.acquire(run.paths.leases)
    if lease is None:
        logger.info("%s is being worked on by another process", folder.name)
        return MAY_BE_RETRIED
    try:
        return _Execution(Run.read(folder), lease, gpus or Held()).go()
    except (LeaseLostError, SandboxError) as error:
        logger.warning("%s: %s", folder.name, error)
        return MAY_BE_RETRIED
    finally:
        lease.release()


def abandon(folder: Path, reason: str) -> bool:
    """Give up on a run that this program cannot do; False if that has to wait."""
    lease = leases.acquire(Run.read(folder).paths.leases, wait=False)
    if lease is None:
        return False
    try:
        _Execution(Run.read(folder), lease, Held()).abandon(reason)
    except (LeaseLostError, SandboxError):
        return False
    finally:
        lease.release()
    return True


class _Execution:
    """One attempt at a run, by the holder of its lease."""

    def __init__(self, run: Run, lease: Lease, gpus: Held):
        self.run = run
        self.lease = lease
        self.gpus = gpus
        self.group = Group.read(run.paths.group.root)
        self.stopping = False

    def go(self) -> int:
        if self._is_settled():
            return FINAL
        self._close_interrupted()
        tidy(self.run)
        try:
            agent, competition, sandbox = self._load()
        except PrerequisiteError as error:  # this node cannot do it; another may
            self._begin()
            return self._failed(str(error))
        self._begin()
        # While a run is open, every grade for its competition says so, to the person grading and to later readers.
        mark_open(competition, self.run.paths.root, self.lease.token)
        with self._signals():
            try:
                if agent.host_only:
                    return self._host_only(agent, competition)
                return self._sandboxed(agent, competition, sandbox)
            except (SandboxError, PrerequisiteError) as error:
                return self._stopped(sandbox) if self._was_told_to_stop() else self._failed(str(error))

    def abandon(self, reason: str) -> None:
        if not self._is_settled():
            self._close_interrupted()
            give_up(self.run, self.lease, reason, {})

    def _is_settled(self) -> bool:
        """Whether nothing is left to do; if a runner was killed after publishing, finish its work now."""
        if is_published(self.run) and self.run.record.state != PLANNED:
            self.run = settle(self.run)
        return self.run.record.is_final

    def _load(self) -> tuple[Agent, Competition, Sandbox]:
        record = self.group.record
        agent = load_agent(record.agent_source, record.agent_command)
        if agent.identity != record.agent["identity"]:
            raise PrerequisiteError(f"{agent.folder} has changed since these runs were planned: plan them again")
        if fault := venv_fault(agent):
            raise PrerequisiteError(f"agent {agent.name} is {fault}")
        knowledge.require_unchanged(record)
        competition = Registry(record.data_dir, record.profile).get_competition(self.run.record.competition)
        require_prepared(competition)
        return agent, competition, sandbox_named("process" if agent.host_only else record.sandbox)

    def _begin(self) -> None:
        attempt = {
            "number": len(self.run.record.attempts) + 1,
            "token": self.lease.token,
            "host": socket.gethostname(),
            "started_at": now(),
        }
        attempts = [*self.run.record.attempts, attempt]
        self.run = self.run.write(state=RUNNING, started_at=attempt["started_at"], attempts=attempts)

    def _note_keeper(self, pid: int) -> None:
        """Record the keeper, so that if we are killed, the next runner can wait for the sandbox to end."""
        attempts = [*self.run.record.attempts]
        attempts[-1] = attempts[-1] | {
            "keeper": asdict(replace(Process.current(), pid=pid, started=process_start(pid) or 0))
        }
        self.run = self.run.write(attempts=attempts)

    def _close_interrupted(self) -> None:
        """Clean up after an attempt that was killed: it left its folders, and perhaps its container."""
        attempts = self.run.record.attempts
        if not attempts or "ended" in attempts[-1]:
            return
        token = attempts[-1]["token"]
        if "keeper" in attempts[-1]:
            _await_end(Process(**attempts[-1]["keeper"]))
        if self.group.record.sandbox != "host":
            sandbox_named(self.group.record.sandbox).remove_leftovers(token)
            remove_door(token)
        self._keep_attempt(token, CANCELLED, "the runner was killed")

    def _keep_attempt(self, token: str, ended: str, detail: str | None) -> None:
        """Keep what an attempt left, and record how it ended."""
        work = self.group.paths.work(token)
        aside = self.run.paths.attempt(len(self.run.record.attempts))
        use = model_use(work)
        if work.is_dir():
            gather(work, aside)
        move_parts(self.run.paths.staged_result(token), aside)  # if it was killed during grading
        self._remove_traces(token)
        attempts = [*self.run.record.attempts]
        attempts[-1] = attempts[-1] | {"ended": ended, "detail": detail, "ended_at": now(), "model": use}
        self.run = self.run.write(state=PLANNED, attempts=attempts)

    def _remove_traces(self, token: str) -> None:
        """Called before the record says that an attempt has ended: afterwards nothing looks for its traces."""
        record = self.group.record
        with contextlib.suppress(PrerequisiteError):
            unmark_open(Registry(record.data_dir, record.profile).get_competition(self.run.record.competition), token)
        if not record.retain:
            remove_tree(self.group.paths.work(token))
            with contextlib.suppress(OSError):
                self.group.paths.work(token).parent.rmdir()

    def _sandboxed(self, agent: Agent, competition: Competition, sandbox: Sandbox) -> int:
        token = self.lease.token
        port, model_port = _free_ports() if sandbox.name == "process" else (None, MODEL_PORT)
        task = make_task(self.group, self.run, agent, competition, token, self.gpus, port)
        if fault := sandbox.fault(task):
            raise SandboxError(f"the sandbox {sandbox.name} cannot be used on this host: {fault}")
        public = task.binds[0].source
        with (
            ValidatorDoor(token, competition, public, task.hidden) as door,
            open_model(self.group.record, task) as model,
        ):
            task = with_doors(task, agent, door.socket, model, model_port)
            conditions = self._conditions(competition, sandbox, task) | {"validator": door.sandbox.name}
            with self.lease.renewed():  # an image may have much to copy
                launch = sandbox.launch(task)
            session = Session(task, launch)
            self._note_keeper(session.pid)
            outcome = self._watch(session, door, model, Snapshots(task))
            if model and model.has_died:
                outcome = replace(outcome, ended=INFRA_ERROR, detail="the gateway to the model died")
        conditions["kept"] = session.kept
        conditions["used"] = outcome.used
        if outcome.ended in (AGENT_ERROR, INFRA_ERROR) and self._was_told_to_stop():
            return self._stopped(sandbox)
        if outcome.ended == CANCELLED:
            self._keep_attempt(token, CANCELLED, outcome.detail)
            return MAY_BE_RETRIED
        if outcome.ended == INFRA_ERROR:
            sandbox.remove_leftovers(token)
            return self._failed(outcome.detail or "the sandbox failed", conditions)
        return self._publish(competition, outcome, conditions, task.work)

    def _was_told_to_stop(self) -> bool:
        """Whether a program died of a signal meant for us: schedulers signal every process."""
        time.sleep(TICK)  # our own signal may still be on its way
        return self.stopping

    def _stopped(self, sandbox: Sandbox) -> int:
        sandbox.remove_leftovers(self.lease.token)
        self._keep_attempt(self.lease.token, CANCELLED, "it was told to stop")
        return MAY_BE_RETRIED

    def _host_only(self, agent: Agent, competition: Competition) -> int:
        """Run an agent of ours that sees the answers, to test the benchmark itself."""
        work = self.group.paths.work(self.lease.token)
        begun = time.monotonic()
        submission = work / "home" / SUBMISSION / f"{SUBMISSION}.csv"
        submission.parent.mkdir(parents=True)
        agent.submit(competition, submission)
        outcome = Outcome(FINISHED, None, 0, time.monotonic() - begun, {})
        conditions = {"sandbox": "host", "sealed": False, "unsealed_by": ["the agent sees the answers"]}
        return self._publish(competition, outcome, conditions, work)

    def _watch(self, session: Session, door: ValidatorDoor, model: ModelDoor | None, snapshots: Snapshots) -> Outcome:
        parent = _parent_pipe()
        poll = select.poll()
        for descriptor in (session.descriptor(), *([parent] if parent is not None else [])):
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        beaten = 0.0
        try:
            while (outcome := session.poll()) is None:
                if parent is not None and any(number == parent for number, _ in poll.poll(TICK * 1000)):
                    self.stopping = True
                    poll.unregister(parent)
                    parent = None
                elif parent is None:
                    poll.poll(TICK * 1000)
                if self.stopping or (model and model.has_died):
                    session.stop()
                if time.monotonic() - beaten > 1:
                    beaten = time.monotonic()
                    session.beat()
                    door.beat()
                if self.lease.is_due:
                    self.lease.renew()
                snapshots.look()
        except BaseException:
            session.stop()
            while session.poll() is None:
                time.sleep(0.02)
            raise
        snapshots.look(last=True)
        return outcome

    def _conditions(self, competition: Competition, sandbox: Sandbox, task: Task) -> dict[str, Any]:
        """What the run actually gets, for its record."""
        record = self.group.record
        unsealed = [
            *(["the sandbox is a plain process"] if sandbox.name == "process" else []),
            *(["the network is open"] if task.network == "full" else []),
            *(["the container is privileged"] if task.privileged else []),
            *(f"the provider may use {tool}" for tool in tools_allowed(record)),
        ]
        here = machine.describe()
        return {
            "sandbox": sandbox.name,
            **sandbox.conditions(task),
            "sealed": not unsealed,
            "unsealed_by": unsealed,
            "network": task.network,
            **({"provider_tools": tools_allowed(record)} if record.model else {}),
            "limits": record.limits,
            "gpus": list(task.gpus),
            "data": data_identity(competition),
            "source": source_kind(competition),
            "profile": record.profile,
            "description": "obfuscated" if record.obfuscate else "named",
            **knowledge.conditions(record),
            **({} if here == record.machine else {"machine": here}),
        }

    def _publish(self, competition: Competition, outcome: Outcome, conditions: dict[str, Any], work: Path) -> int:
        staged = stage(self.run, self.lease)
        use = model_use(work)
        with self.lease.renewed():
            collected = gather(work, staged)
            submission = staged / SUBMISSION / f"{SUBMISSION}.csv"
            present = submission.is_file()
            report = grade_run(submission, competition, self.run, self.group)
            if not conditions["sealed"]:
                conditions["data_unchanged"] = _data_is_unchanged(competition)
            self._remove_traces(self.lease.token)
        attempts = [*self.run.record.attempts]
        end = {"ended": outcome.ended, "detail": outcome.detail, "ended_at": now(), "model": use}
        attempts[-1] = attempts[-1] | end
        publish(
            self.run,
            staged,
            self.lease,
            state="ended",
            **end,
            submission=PRESENT if present else NONE,
            report=report,
            attempts=attempts,
            seconds=round(outcome.seconds, 3),
            gpu_hours=round(outcome.seconds * len(self.gpus.names) / 3600, 6),
            conditions=conditions | {"collected": collected.to_dict()},
        )
        return FINAL

    def _failed(self, reason: str, conditions: dict[str, Any] | None = None) -> int:
        """The infrastructure failed: try again, but not forever."""
        logger.warning("%s: %s", self.run.paths.root.name, reason)
        self._keep_attempt(self.lease.token, INFRA_ERROR, reason)
        if not is_exhausted(self.run.record.attempts):
            return MAY_BE_RETRIED
        return give_up(self.run, self.lease, reason, conditions or {})

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and Ctrl-C end the attempt cleanly: what it has is kept, and it can be repeated."""

        def stop(*_: object) -> None:
            self.stopping = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def give_up(run: Run, lease: Lease, reason: str, conditions: dict[str, Any]) -> int:
    """Publish that a run failed through no fault of the agent."""
    publish(
        run,
        stage(run, lease),
        lease,
        state="ended",
        ended=INFRA_ERROR,
        detail=reason,
        submission=NONE,
        ended_at=now(),
        conditions=conditions,
    )
    return FINAL


def _data_is_unchanged(competition: Competition) -> bool | None:
    """Whether prepared data is still what was recorded; None if nothing was."""
    from mlebench.data.verification import verify

    return None if read_manifest_head(competition) is None else not verify(competition)


def _await_end(keeper: Process) -> None:
    """Wait for a keeper, which ends its sandbox once its runner has ended; one on another host has had time to."""
    deadline = time.monotonic() + 30
    while keeper.is_here and keeper.is_alive:
        if time.monotonic() > deadline:
            raise SandboxError(f"the sandbox of an earlier attempt is still running: process {keeper.pid}")
        time.sleep(0.02)


def _parent_pipe() -> int | None:
    number = os.environ.get(PARENT_VARIABLE)
    if number == STARTER:
        return os.pidfd_open(os.getppid())
    return int(number) if number else None


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


__all__ = ["CANNOT_WORK", "FINAL", "MAY_BE_RETRIED", "abandon", "execute"]
