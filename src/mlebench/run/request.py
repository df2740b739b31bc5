"""What a run group is planned from: the same for Python and for `mlebench run`, whose options have these names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal, Self

from mlebench.core.errors import PrerequisiteError, RequestError
from mlebench.core.paths import PROFILES
from mlebench.gateway.access import PROVIDERS, ModelAccess, plan_access
from mlebench.gateway.prices import Price, price_of, read_prices
from mlebench.records.group import EXECUTORS, NETWORKS, GroupRecord, ModelFacts, Network
from mlebench.run.gpus import MOST_RUNS_PER_GPU
from mlebench.sandbox import BACKENDS

AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """Which language models runs may use, with `network="model"`.

    Raises RequestError for values that make no sense. The key is read from the environment when runs are planned.
    """

    models: Sequence[str] = ()  # the first is the default; none: the one that the agent's config.yaml names
    endpoint: str | None = None  # None: the provider's own
    provider: Literal["openai", "anthropic", "google"] | None = (
        None  # whose API it speaks; None: depends on endpoint and model
    )
    key_env: str | None = None  # the environment variable with the key; None: the provider's, for its own endpoint
    budget: str | None = None  # the most that a run may spend: 5usd or 200000tokens
    prices: Mapping[str, Price] = field(default_factory=dict)  # in addition to the known ones
    tools: Sequence[str] = ()  # tools of the provider that runs may use; they unseal the runs
    fields: Sequence[str] = ()  # fields of requests that are opened; they unseal the runs

    def __post_init__(self) -> None:
        for name in ("models", "tools", "fields"):
            _require_list(name, getattr(self, name))
        if self.provider is not None:
            _require_word("provider", self.provider, PROVIDERS)

    @classmethod
    def like(cls, facts: ModelFacts) -> Self:
        """The request for the models, endpoint and budget of an earlier group."""
        return cls(
            models=facts.models,
            endpoint=facts.endpoint or None,
            provider=facts.provider or None,  # pyright: ignore[reportArgumentType] checked when it is made
            key_env=facts.key_env,
            budget=facts.budget,
            prices={model: price_of(entry, model) for model, entry in facts.prices.items()},
            tools=facts.tools,
            fields=facts.fields,
        )

    def access(self, named_by_agent: str | None) -> ModelAccess:
        """The access that runs get. Raises PrerequisiteError if it cannot work, as without a key."""
        return plan_access(
            self.models or ([named_by_agent] if named_by_agent else []),
            {**read_prices(), **self.prices},
            provider=self.provider,
            endpoint=self.endpoint,
            key_env=self.key_env,
            budget=self.budget,
            tools=self.tools,
            fields=self.fields,
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run group to be: an agent on competitions, and the conditions. What is left out, the machine decides.

    Raises RequestError for values that make no sense by themselves. Whether this machine can do what is requested is
    checked when the runs are planned.
    """

    agent: str | None = None  # NAME, FOLDER, NAME#ID or FOLDER#ID; may be left out if there is an agent_command
    competitions: Sequence[str]  # ids; each counts once
    agent_command: str | None = None  # what the agent `command` runs, with bash
    agent_options: Mapping[str, str] = field(default_factory=dict)
    profile: str = PROFILES[0]
    seeds: int = 1  # runs for each competition
    twin: bool = False  # run on twins; those that are missing are made
    data_dir: Path | str | None = None
    runs_dir: Path | None = None  # None: beside the data
    sandbox: str = AUTO
    time_limit: float | None = None  # seconds for each run
    memory: int | None = None  # bytes
    cpus: float | None = None
    shm: int | None = None  # bytes of /dev/shm
    container_config: Path | None = None  # a JSON file of container limits and runtime; the limits above override it
    gpus: str | None = None  # all, none, or names; for Slurm and Ray, how many for each run
    runs_per_gpu: int = 1
    network: Network = "none"
    model: ModelRequest | None = None
    obfuscate: bool = False  # hide from agents which competition it is
    knowledge: Path | None = None  # a folder that agents may read
    weights: Path | None = None  # a folder of pretrained models that agents may load
    environment: Path | None = None  # a conda environment or venv that agents use; None: the agent's, if it names one
    retain: bool = False  # keep the sandbox's folders, and its container, after the run
    image: str | None = None
    runtime: str | None = None  # of containers
    workers: int = 1  # runs at a time
    executor: str | None = None  # None: this machine
    slurm_options: Mapping[str, str] = field(default_factory=dict)  # sbatch's, in addition to those in the settings
    ray_address: str | None = None
    origin: str | None = None  # the run, group or bundle whose conditions are repeated

    def __post_init__(self) -> None:
        _require_list("competitions", self.competitions)
        if not self.competitions:
            raise RequestError("name competitions with -c, --split or --list")
        if not (self.agent or self.agent_command):
            raise RequestError("name an agent with --agent; `mlebench agents` lists those built in")
        _require_word("profile", self.profile, PROFILES)
        _require_word("sandbox", self.sandbox, (AUTO, *BACKENDS))
        _require_word("network", self.network, NETWORKS)
        if self.executor is not None:
            _require_word("executor", self.executor, EXECUTORS)
        for name in ("seeds", "workers", "time_limit", "memory", "cpus", "shm"):
            _require_positive(name, getattr(self, name))
        if not 1 <= self.runs_per_gpu <= MOST_RUNS_PER_GPU:
            raise RequestError(f"runs_per_gpu must be 1 to {MOST_RUNS_PER_GPU}, not {self.runs_per_gpu}")
        if self.model and self.network != "model":
            raise RequestError("--model and the options that go with it need `--network model`")

    @classmethod
    def like(cls, record: GroupRecord, **changes: Any) -> Self:
        """The request that an earlier group answered, with changes. Workers, GPUs and executor are chosen anew.

        Raises RequestError if changed values make no sense, PrerequisiteError if the record says too little.
        """
        if record.limits is None:
            raise PrerequisiteError(f"the group {record.id} states no limits: its conditions cannot be repeated")
        limits = {name: getattr(record.limits, name) for name in ("memory", "cpus", "shm")}
        earlier = {
            "agent": record.agent_source,
            "agent_command": record.agent_command,
            "agent_options": record.agent_options,
            "competitions": record.competitions,
            "profile": record.profile,
            "seeds": record.seeds,
            "data_dir": record.data_dir,
            "twin": bool(record.twin) and not record.data_dir,
            "sandbox": record.sandbox if record.sandbox in BACKENDS else AUTO,
            "time_limit": record.limits.seconds,
            **limits,
            "runs_per_gpu": record.runs_per_gpu,
            "network": record.network,
            "obfuscate": bool(record.obfuscate),
            "knowledge": Path(record.knowledge) if record.knowledge else None,
            "weights": Path(record.weights) if record.weights else None,
            "environment": Path(record.environment) if record.environment else None,
            "retain": bool(record.retain),
            "image": record.image,
            "runtime": record.runtime,
            "origin": record.id,
        }
        if {"agent", "agent_command"} & changes.keys():  # the options are another agent's
            earlier |= {"agent_options": {}, "agent_command": None}
        merged = earlier | changes
        if record.model and merged["network"] == "model" and "model" not in changes:
            merged["model"] = ModelRequest.like(record.model)
        return cls(**merged)


def _require_list(name: str, values: Sequence[str]) -> None:
    if isinstance(values, str):
        raise RequestError(f"{name} must be a list, not the text {values!r}")


def _require_word(name: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise RequestError(f"{name} must be one of {', '.join(words)}, not {word!r}")


def _require_positive(name: str, number: float | None) -> None:
    if number is not None and not 0 < number < inf:
        raise RequestError(f"{name} must be a number above 0, not {number}")
