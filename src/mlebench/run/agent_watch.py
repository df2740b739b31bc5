"""Watches an agent while it runs: sends heartbeats, renews the lease, takes snapshots, and heeds who stops it."""

import logging
import os
import select
import time

from mlebench.core.leases import Lease
from mlebench.core.processes import process_start
from mlebench.gateway.proxy import GatewayProxy
from mlebench.records.run_groups import Group, Run
from mlebench.run import hosts
from mlebench.run.retry_rules import LOST, SIGNAL
from mlebench.run.signals import PARENT_VARIABLE, STARTER, next_sender, parent_pipe
from mlebench.run.snapshots import Snapshots
from mlebench.run.validator_proxy import ValidatorProxy
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.resource_usage import descendants
from mlebench.sandbox.session import SupervisorClient, TaskOutcome
from mlebench.sandbox.supervisor import SETUP

logger = logging.getLogger(__name__)

TICK = 0.2


class AgentWatch:
    """Waits for one attempt's agent, and knows whether somebody wanted it to stop."""

    def __init__(self, run: Run, group: Group, lease: Lease):
        self._run, self._group, self._lease = run, group, lease
        self.stopped_by: str | None = None
        self._has_noted_start = False

    def stop(self) -> None:
        """Have the agent end, as whoever started this program wants."""
        self.stopped_by = self.stopped_by or SIGNAL

    def late_stop(self) -> str | None:
        """What stopped a program that seems to have failed: schedulers signal it and us, in any order."""
        time.sleep(TICK)  # our own signal may still be on its way
        return self.stopped_by

    def wait(
        self, session: SupervisorClient, proxy: ValidatorProxy, model: GatewayProxy | None, snapshots: Snapshots
    ) -> TaskOutcome:
        """How the agent's task ended. The lease is renewed meanwhile."""
        parent = parent_pipe()
        poll = select.poll()
        for descriptor in (session.descriptor(), *([parent] if parent is not None else [])):
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        begun, last_heartbeat = time.monotonic(), 0.0
        snapshots.start()
        try:
            while (outcome := session.poll()) is None:
                if parent is not None and any(number == parent for number, _ in poll.poll(TICK * 1000)):
                    self._stop_for(is_known=os.environ[PARENT_VARIABLE] == STARTER)
                    poll.unregister(parent)
                    parent = None
                elif parent is None:
                    poll.poll(TICK * 1000)
                self._heed_signals(session.pid)
                if self.stopped_by or (model and model.has_died):
                    session.stop()
                if time.monotonic() - last_heartbeat > 1:
                    last_heartbeat = time.monotonic()
                    session.heartbeat()
                    proxy.heartbeat()
                if self._lease.is_due:
                    self._lease.renew()
                    self._heed_group(begun)
        except BaseException:
            session.stop()
            while session.poll() is None:
                time.sleep(0.02)
            raise
        finally:
            with self._lease.renewed():
                snapshots.stop()
        with self._lease.renewed():
            snapshots.look()
        self._heed_signals(session.pid)
        return outcome

    def note_start(self) -> None:
        """Tell the group, once, that agents can start on this host."""
        if not self._has_noted_start:
            hosts.note_start(self._group.paths)
        self._has_noted_start = True

    def _heed_signals(self, supervisor: int) -> None:
        """Stop if a signal says so, but not if it is the agent's. A sender that has ended could have been the agent's.

        So could whoever killed our parent.
        """
        while (sender := next_sender()) is not None:
            if sender in descendants(supervisor):
                logger.warning("%s: a signal from the agent (process %d) is ignored", self._run.paths.root.name, sender)
            else:
                self._stop_for(is_known=sender == 0 or process_start(sender) is not None)

    def _stop_for(self, *, is_known: bool) -> None:
        """Stop the agent. If an agent that is not isolated may be behind it, the attempt counts as lost."""
        self.stop()
        if not is_known and not sandbox_named(self._group.record.sandbox).is_isolated:
            self.stopped_by = LOST

    def _heed_group(self, begun: float) -> None:
        """Stop if the group was cancelled; an agent that has run for a while has certainly started."""
        if self._group.paths.cancelled.exists():
            self.stop()
        if time.monotonic() - begun > SETUP:
            self.note_start()
