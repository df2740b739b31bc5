"""The record of a run group: group.json, what was asked for. docs/reference/records.md explains every field."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mlebench.records.base import Count, Name, Number, Record, Seconds, Text, Time

LOCAL, SLURM, RAY = EXECUTORS = ("local", "slurm", "ray")
NETWORKS = ("none", "model", "full")
# Fields: folders of the host that agents may read; the hash of each has a field of its own.
FOLDERS = ("knowledge", "weights", "environment")
PACKAGE_FIELDS = ("packages", "packages_sha256", "packages_before", "packages_allow", "packages_limit")
Network = Literal["none", "model", "full", "unknown"]


@dataclass(frozen=True)
class Limits:
    """What a task may use. None: no limit is set."""

    seconds: Seconds
    memory: Count | None = None  # bytes
    cpus: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    shm: Count = 4 << 30  # bytes of /dev/shm
    processes: Count = 4096
    disk: Count | None = None  # bytes that its writable folders may take up on the disk
    inodes: Count | None = None  # files and folders in them
    log: Count = 100 << 20  # bytes of output to keep


class RequestedLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for of limits and sandbox. None: the machine decides."""

    seconds: Seconds | None = None
    memory: Count | None = None
    cpus: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    shm: Count | None = None
    sandbox: Text | None = None

    def limits(self) -> dict[str, Any]:
        """The requested limits by name, without the sandbox."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value and name != "sandbox"}


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as its folder describes it; secrets by name only."""

    name: Name
    spec: Text | None = None
    folder: Text | None = None
    identity: Text | None = None
    start: Text | None = None
    arguments: list[Text] = []
    shell_command: Text | None = None
    env: dict[str, Text] = {}
    secrets: dict[str, Text] = {}
    privileged: bool = False
    obfuscate: bool = False
    dockerfile: Text | None = None
    model: Text | None = None
    scaffold: Text | None = None
    knowledge: list[Text] = []
    requirements: Text | None = None
    python: Text | None = None
    npm: list[Text] = []
    python_environment: Text | None = None
    needs_model: bool = False
    shares: list[Text] = []
    host_only: bool = False


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the network `model` leads to; never a key, only the variable that holds it."""

    provider: Text
    endpoint: Text
    models: list[Text]
    key_env: Text | None = None
    budget: Text | None = None
    tools: list[Text] = []
    prices: dict[str, dict[str, Number]] = {}
    fields: list[Text] = []


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    index: Text
    name: Text
    memory_mb: Count | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine on which runs were planned or carried out."""

    host: Text | None = None
    system: Text | None = None
    cpu: Text | None = None
    cpus: Count | None = None
    memory: Count | None = None
    gpus: list[Gpu] = []
    python: Text | None = None


class ExecutorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Who starts a group's runs, and with which options."""

    name: Text = LOCAL
    options: dict[str, Text] = {}  # for Slurm, sbatch's; for Ray, the address

    @property
    def is_remote(self) -> bool:
        return self.name != LOCAL


class GroupRecord(Record, frozen=True, kw_only=True):
    """What was asked for. It does not change, except for the report that counts."""

    id: Name
    origin: Text | None = None  # `reference`: it was written by the reference; what it does not state is unknown
    created_at: Time | None
    agent: AgentFacts
    agent_source: Text  # what `--agent` was
    agent_command: Text | None = None
    agent_options: dict[str, Text] = {}  # what `--agent-option` set
    competitions: list[Name]
    seeds: Annotated[int, Meta(ge=0, le=1_000_000)]
    data_dir: Text | None
    profile: Annotated[str, Meta(min_length=1, max_length=40)]
    twin: bool | None
    sandbox: Text
    image: Text | None = None
    runtime: Text | None = None  # of containers
    limits: Limits | None  # None: unknown
    requested: RequestedLimits | None = None  # None: unknown
    gpus_per_run: Count | None = 0
    runs_per_gpu: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    network: Network = "none"
    model: ModelFacts | None = None
    obfuscate: bool | None = False
    knowledge: Text | None = None
    knowledge_sha256: Text | None = None  # of the files in that folder
    weights: Text | None = None
    weights_sha256: Text | None = None
    environment: Text | None = None  # the prefix of a conda environment or a venv
    environment_sha256: Text | None = None  # of the next two
    environment_python: Text | None = None
    environment_packages: list[Text] = []
    packages: Text | None = None  # a folder of wheels, or the address of an index
    packages_sha256: Text | None = None  # of a folder: of the names and hashes of its files
    packages_before: Text | None = None  # only files that were uploaded before
    packages_allow: list[Text] | None = None  # only these names
    packages_limit: Count | None = None  # bytes of files that a run may fetch
    retain: bool | None = False
    workers: Count | None = 1
    machine: Machine = Machine()
    like: Text | None = None
    executor: ExecutorConfig = ExecutorConfig()
    report: Annotated[str, Meta(pattern=r"\A[^/\0]{1,255}\Z")] | None = None  # the file name of the report that counts

    @classmethod
    def upgrade(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Earlier versions had no limits, instead of unknown ones, for groups that the reference wrote."""
        return data | {"limits": None} if data.get("limits") == {} else data

    @property
    def origin_words(self) -> str | None:
        """Who wrote the group, if others did."""
        return f"written by the {self.origin}" if self.origin else None


def is_package_index(source: str) -> bool:
    """Whether `--packages` names an index, and not a folder."""
    return source.lower().startswith(("http://", "https://"))
