"""What a sandbox is asked to do, what it can promise, and how it ended: the same words for every backend.

A backend only says *how* a task is started and stopped (`Launch`). Starting it, enforcing its limits and ending all of
its processes is the job of the supervisor (`supervisor.py`), whatever the backend. The supervisor gets both, as they
are.
"""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from mlebench.core import paths
from mlebench.records.group import Limits

HOME = "/home"
PROXIES = "/run/mlebench"  # where proxies' sockets are inside a sandbox
BIND_ROOT = "/tmp"  # noqa: S108 where root, in a mount namespace of its own, makes sources reachable for another user
RELAY = Path(__file__).with_name("relay.py")
FIRST_UID = 1_600_000_000  # root runs a task as this user plus its process id: nobody else on this host
INNER_UID = 1000
SILENCE = 30.0  # seconds: less than a lease takes to expire, so that a hung runner does not keep its sandbox


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host that the task sees."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class OwnImage:
    """An image made for the task. What it has in /home belongs to the task, too."""

    build: str  # the command that builds it
    identity: str | None  # of the agent whose files it must have; None: any will do


@dataclass(frozen=True)
class Task:
    """One program, what it sees and what it may use. `work` holds its writable folders: home/ and tmp/."""

    name: (
        str  # unique on this host; containers and control groups are named after it, so it says nothing about the task
    )
    command: tuple[str, ...]
    work: Path
    limits: Limits
    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    proxies: dict[str, Path] = field(default_factory=dict)  # name of a proxy: its socket on the host
    ports: dict[int, str] = field(default_factory=dict)  # port on the sandbox's loopback: the proxy it leads to
    network: str = "none"
    gpus: tuple[str, ...] = ()
    held_descriptors: tuple[int, ...] = ()  # the supervisor has them open, too, and nothing in the sandbox has
    own_cpus: bool = True  # whether it gets CPUs that no other task gets, as long as there are some; helpers do not
    image: str | None = None
    own_image: OwnImage | None = None
    runtime: str | None = None  # of containers; None: the engine's default
    privileged: bool = False
    retain: bool = False  # whether to keep what a backend made for it
    hidden: tuple[Path, ...] = ()  # what must stay hidden, even below something visible

    @property
    def home(self) -> Path:
        return self.work / "home"


def paths_to_hide(hidden: Iterable[Path], shown: Iterable[tuple[Path, str]]) -> dict[str, bool]:
    """Where hidden paths would be visible, below what is shown and under any name; True for folders."""
    places: dict[str, bool] = {}
    trees = [(source.resolve(), Path(target)) for source, target in shown]
    for path in dict.fromkeys(path.resolve() for path in hidden):
        if path.exists():
            below = [target / path.relative_to(tree) for tree, target in trees if path.is_relative_to(tree)]
            places |= dict.fromkeys(map(str, below), path.is_dir())
    return places


@dataclass(frozen=True)
class Launch:
    """How the supervisor starts a task, and stops it if ending its processes is not enough."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)  # descriptors that the program finds open, with content
    uid: int | None = None  # the user to become, if not the current one
    mounts: tuple[tuple[str, str], ...] = ()  # what root first binds below BIND_ROOT, for that user to reach
    # Commands of an engine, for what is no child of ours:
    stop_commands: tuple[tuple[str, ...], ...] = ()  # end it
    cleanup_commands: tuple[tuple[str, ...], ...] = ()  # then remove what is left of it
    health_check: tuple[str, ...] = ()  # fails when the sandbox is dead though its client lives
    oom_query: tuple[str, ...] = ()  # prints `true` if the kernel killed processes that ran out of memory
    exit_code_query: tuple[str, ...] = ()  # prints the task's exit code if it has ended, not just the client here
    pid_query: tuple[str, ...] = ()  # prints the process id of the relay

    parent_pipe: bool = False  # whether the program finds a pipe as its input that closes when the supervisor ends
    writable: tuple[str, ...] = ()  # folders whose size is limited
    cgroup: bool = True  # whether our own control group, not the started program, sets limits
    sys: str | None = None  # the folder that the task will see as /sys
    status: int | None = None  # a descriptor on which the program reports the task's `exit-code`, in JSON


def encode_job(task: Task, launch: Launch) -> bytes:
    """The line of JSON that a supervisor gets. msgspec cannot write it: names of files need not be Unicode."""
    return json.dumps(msgspec.to_builtins((task, launch), str_keys=True, enc_hook=str)).encode() + b"\n"


def decode_job(line: bytes) -> tuple[Task, Launch]:
    """What `encode_job` made the line of."""
    return msgspec.convert(json.loads(line), tuple[Task, Launch], str_keys=True, dec_hook=lambda kind, text: kind(text))


class Sandbox(ABC):
    """A backend, and all that is asked about one."""

    name: ClassVar[str]
    noun: ClassVar[str] = "a sandbox"  # for messages
    is_isolated: ClassVar[bool] = True  # False: its tasks see the host's files, network and processes
    runs_images: ClassVar[bool] = False  # False: its tasks have this machine's programs
    takes_runtimes: ClassVar[bool] = False  # whether an image can be run by another runtime than the engine's default

    @abstractmethod
    def fault(self, task: Task | None = None) -> str | None:
        """Why it cannot be used here, or for this task, and what to do about it; None if it can."""

    @abstractmethod
    def launch(self, task: Task) -> Launch:
        """How the supervisor starts a task. May write to the task's folder."""

    @abstractmethod
    def remove_leftovers(self, name: str) -> None:
        """End and remove what a task of that name may have left after a kill."""

    def conditions(self, task: Task) -> dict[str, Any]:  # noqa: ARG002
        """The fields of `RunConditions` that describe it: version, image and so on. Called before the launch."""
        return {}

    def home(self, work: Path) -> str:  # noqa: ARG002
        """Where a task sees the folder home/ of its working folder."""
        return HOME

    def path_of(self, bind: Bind) -> str:
        """Where a task sees a file or folder of the host."""
        return bind.target

    def search_path(self, image: str | None) -> list[str]:  # noqa: ARG002
        """The folders that programs are in."""
        return ["/usr/local/bin", "/usr/bin", "/bin"]


def hidden_paths() -> list[Path]:
    """Where the benchmark itself is: its code, programs, data and competitions. No sandbox shows any of it."""
    package = paths.module_dir()
    beside = package.parent
    programs = {Path(sys.executable).parent, Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin")}
    return [
        package,
        beside / "environment",
        *beside.glob("mlebench-*.dist-info"),
        *beside.glob("__editable__*mlebench*"),
        *(folder / "mlebench" for folder in programs),
        paths.cache_dir(),
        paths.default_data_dir(),
        *paths.competition_path(),
    ]


def interpreter_prefixes(prefix: Path) -> list[Path]:
    """Where a Python installation is: both the path it is known by and the one that resolves to."""
    return list(dict.fromkeys([prefix, prefix.resolve()]))


def interpreter() -> str:
    """The Python that runs the relay: the one behind this program's environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def chown_tree(folder: Path, uid: int) -> None:
    """Give the writable folders to the user the sandbox runs as: all of them, or an agent could not submit."""

    def fail(error: OSError) -> None:
        raise error

    for top in ("home", "tmp"):
        for parent, _, names in os.walk(folder / top, onerror=fail):
            os.chown(parent, uid, uid)
            for name in names:
                os.chown(Path(parent, name), uid, uid, follow_symlinks=False)
