"""The record of a run: run.json, replaced at each step. docs/reference/records.md explains every field."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mlebench.core.processes import Process
from mlebench.records.base import Count, Name, Number, Record, Seconds, Text, Time
from mlebench.records.group import Limits, Machine
from mlebench.records.report import Report
from mlebench.records.usage import ModelUsage

PLANNED, RUNNING, ENDED = STATES = ("planned", "running", "ended")
DAMAGED = "damaged"  # the state of a run whose record cannot be read
PRESENT, NONE = "present", "none"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt at a run. What is not known, or has not happened yet, is left out of the file."""

    number: Count
    token: Annotated[str, Meta(pattern=r"\A\w{1,64}\Z")]  # names its lease, working folder, container, control group
    host: Text
    node: Text | None = None  # the scheduler's name for that host
    job: Text | None = None
    started_at: Time
    agent_started_at: Time | None = None
    supervisor: Process | None = msgspec.field(default=None, name="keeper")  # as earlier versions called it
    ended: Text | None = None
    detail: Text | None = None
    interrupted_by: Text | None = None
    ended_at: Time | None = None
    seconds: Seconds | None = None
    model: ModelUsage | None = None
    forgiven: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it is in progress, as far as the record says."""
        return self.ended is None


class Omission(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the agent's that was not stored."""

    name: Text
    reason: Text


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """What was stored of an agent's files."""

    files: Count = 0
    bytes: Count = 0
    left_out: list[Omission] = []
    left_out_in_all: Count = 0


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent's processes used."""

    oom_kills: Count | None = None
    memory_peak: Count | None = None
    cpu_seconds: Seconds | None = None
    disk: Count | None = None
    disk_filled_by: Text | None = None
    log_dropped: Count | None = None


class RunConditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run really had. What does not apply to it is left out of the file."""

    sandbox: Text | None = None
    version: Text | None = None  # of the sandbox's program
    rootless: bool | None = None
    image: Text | None = None
    image_id: Text | None = None
    image_digests: list[Text] | None = None
    runtime: Text | None = None
    sealed: bool | None = None
    unsealed_by: list[Text] = []
    network: Text | None = None
    provider_tools: list[Text] | None = None
    request_fields: list[Text] | None = None
    limits: Limits | None = None
    kept: dict[str, Text] = {}  # what enforced each limit
    used: ResourceUse = ResourceUse()
    gpus: list[Text] = []
    runs_per_gpu: Count | None = None
    data: Text | None = None  # the identity of the prepared data
    source: Text | None = None
    profile: Text | None = None
    description: Text | None = None
    knowledge: Text | None = None
    knowledge_sha256: Text | None = None
    weights: Text | None = None
    weights_sha256: Text | None = None
    environment: Text | None = None
    environment_sha256: Text | None = None
    validator: Text | None = None
    machine: Machine | None = None  # if it differs from the group's
    collected: Collection = Collection()
    data_unchanged: bool | None = None


class RunRecord(Record, frozen=True, kw_only=True):
    run_id: Name
    competition: Name
    seed: Count | None
    state: Literal["planned", "running", "ended"] = PLANNED
    ended: Text | None = None
    detail: Text | None = None
    submission: Literal["present", "none"] | None = None
    report: Report | None = None
    attempts: list[Attempt] = []
    starts: Count | None = None  # how often an agent was started, in all attempts; None: not recorded
    rerolls: Count | None = 0
    planned_at: Time | None
    started_at: Time | None = None
    ended_at: Time | None = None
    seconds: Seconds | None = None  # of the agent, in the attempt that counts
    gpu_hours: Number | None = None
    model: ModelUsage | None = None  # in the attempt that counts
    conditions: RunConditions = RunConditions()

    @property
    def last_attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def agent_started_at(self) -> str | None:
        """When the last agent was started, from which snapshots count; older records know only its attempt."""
        return (self.last_attempt and self.last_attempt.agent_started_at) or self.started_at

    @property
    def is_final(self) -> bool:
        return self.state == ENDED
