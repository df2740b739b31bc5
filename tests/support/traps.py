"""What a hostile agent must not find: canaries in answers, data, another run, our environment and source."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import mlebench
from mlebench.records.run import RunConditions
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition, Registry
from support.kernel_keys import add_to_new_session
from support.sandboxes import leftovers
from support.waiting import wait_until

AGENT = Path(__file__).parents[1] / "run" / "hostile"
PACKAGE = Path(mlebench.__file__).parent


def canary() -> str:
    return f"canary-{uuid4().hex}"


@dataclass
class Trap:
    """A data directory, a runs directory with another user's run in it, and an agent that looks for them."""

    root: Path
    competition: Competition
    canaries: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, Any] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def other_run(self) -> Path:
        return self.runs / "2020_run-group_other" / "another_run"

    @classmethod
    def set(cls, root: Path, titanic: Competition) -> "Trap":
        begun, data = time.time() - 1, root / "data"
        shutil.copytree(titanic.paths.data_dir, data)
        trap = cls(root, Registry(data).get_competition(titanic.id))
        names = ("data directory", "other run", "environment", "key", "abstract")
        trap.canaries = {name: canary() for name in names}
        (data / "notes.txt").write_text(trap.canaries["data directory"])
        for name in ("submission/submission.csv", "run.log", "logs/agent.log"):
            path = trap.other_run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(trap.canaries["other run"])
        trap.canaries["answers"] = trap.answers.read_text()[100:400]
        grader = next(path for path in PACKAGE.glob("competitions/*/grade.py") if path.parent.name == titanic.id)
        trap.canaries["source"] = grader.read_text()[:300]
        secret = [*PACKAGE.rglob("*.py"), *data.rglob("*"), *trap.other_run.rglob("*")]
        public = {path.stat().st_size for path in trap.competition.public_dir.iterdir()}
        trap.wanted = {
            "begun": begun,
            "sizes": sorted({path.stat().st_size for path in secret if path.is_file()} - public - {0}),
            "paths": [
                str(path).encode().hex()
                for path in (trap.answers, grader, data / "notes.txt", trap.other_run / "run.log")
            ],
            "system": [f"{sys.base_prefix}/"],
            "private": str(trap.answers).encode().hex(),
            "other run": str(trap.other_run / "submission").encode().hex(),
            "key": trap.canaries["key"].encode().hex(),
            "keys": [],
            "abstract": trap.canaries["abstract"].encode().hex(),
            "addresses": addresses(),
            "ports": [1],
            "pid": os.getpid(),
            "pause": 0,
        }
        return trap

    @property
    def answers(self) -> Path:
        return max(self.competition.paths.private.glob("*.csv"), key=lambda path: path.stat().st_size)

    def agent(self, do: str, **wanted: Any) -> str:
        folder = self.root / f"agents-{uuid4().hex[:8]}" / AGENT.name
        shutil.copytree(AGENT, folder, ignore=shutil.ignore_patterns("__pycache__"))
        hidden = {name: text.encode().hex() for name, text in self.canaries.items()}
        (folder / "wanted.json").write_text(json.dumps({**self.wanted, "canaries": hidden, **wanted}))
        return f"{folder}#{do}"

    def run(self, do: str, *options: str, sandbox: str, code: int | None = 0, **wanted: Any) -> "Caught":
        return self._run("--agent", self.agent(do, **wanted), *options, sandbox=sandbox, code=code)

    def run_command(self, program: str, sandbox: str, code: int | None = 0) -> "Caught":
        return self._run("--agent-command", program, sandbox=sandbox, code=code)

    def _run(self, *options: str, sandbox: str, code: int | None) -> "Caught":
        command = [sys.executable, "-P", "-m", "mlebench", "run"]
        command += ["-c", self.competition.id, "--sandbox", sandbox, "--runs-dir", str(self.runs)]
        command += ["--time-limit", "180", "--data-dir", str(self.competition.paths.data_dir), *options]
        env = {**os.environ, "SOME_API_KEY": self.canaries["environment"]}
        before = set(self.runs.iterdir())
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, preexec_fn=self._hold_key)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        (folder,) = set(self.runs.iterdir()) - before
        return Caught(Group.read(folder), done.stdout + done.stderr)

    def _hold_key(self) -> None:
        add_to_new_session(self.canaries["key"].encode())

    def state(self) -> dict[str, tuple[Any, ...]]:
        """Everything that no agent may change."""
        where = self.competition.paths
        return {
            str(path): seen
            for top in (where.prepared, where.raw, self.other_run, self.root / "data" / "notes.txt")
            for path in [top, *top.rglob("*")]
            if (seen := _state(path))
        }


@dataclass(frozen=True)
class Caught:
    """Runs of the hostile agent."""

    group: Group
    output: str

    @property
    def run(self) -> Run:
        (one,) = self.group.runs()
        return one

    @property
    def findings(self) -> dict[str, Any]:
        return json.loads((self.run.paths.logs / "findings.json").read_text())

    @property
    def facts(self) -> RunConditions:
        return self.run.record.conditions

    def leftovers(self) -> list[str]:
        """What the sandboxes of these runs and their validators left behind; other sandboxes may be running here."""
        tokens = {attempt.token for run in self.group.runs() for attempt in run.record.attempts}
        return [name for name in leftovers() if any(token in name for token in tokens)]


def _state(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return status.st_mode, status.st_uid, status.st_size if content else 0, content


def addresses() -> list[str]:
    """The addresses of this machine that are not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        return [probe.getsockname()[0]]
    return []


@contextmanager
def listening(trap: Trap) -> Iterator[dict[str, Any]]:
    """Servers of the host that no agent may reach: on its loopback, on all addresses, and on an abstract socket."""
    with (
        socket.create_server(("127.0.0.1", 0)) as private,
        socket.create_server(("0.0.0.0", 0)) as public,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind("\0" + trap.canaries["abstract"])
        abstract.listen()
        servers = (private, public, abstract)
        yield {"ports": [private.getsockname()[1], public.getsockname()[1]]}
        for server in servers:
            server.settimeout(0.01)
            with suppress(TimeoutError):
                server.accept()
                raise AssertionError(f"the agent reached {server}")


def run_as(
    user: int | None,
    folder: Path,
    program: str,
    network: str = "none",
    sandbox: str = "bubblewrap",
    shown: Mapping[Path, str] | None = None,
) -> tuple[str, str]:
    """How a program ends in a sandbox of another user, and what it prints. $KEYS: numbers of keys of that user.

    `shown`: files and folders of the host that it sees, and where.
    """
    binds = [(str(source), target) for source, target in (shown or {}).items()]
    python = sys.executable if user is None else python_for_all()
    with tempfile.TemporaryDirectory(prefix="sealed-") as place:
        if user is not None:
            os.chown(place, user, user)
        text = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        text += "import json; from pathlib import Path; from mlebench.sandbox.base import Bind\n"
        text += f"binds = tuple(Bind(Path(source), target) for source, target in {binds!r})\n"
        text += "from support.sandboxes import *; from support.kernel_keys import *\n"
        text += "with added_to_user_keyring(b'canary') as keys:\n"
        text += "    numbers = ' '.join(map(str, keys))\n"
        text += f"    program = f'KEYS=\"{{numbers}}\"; ' + {program!r}\n"
        text += f"    task = make_task(Path({place!r}), program, network={network!r}, binds=binds)\n"
        text += f"    outcome, log = run_task({sandbox!r}, task)\n"
        text += "print(json.dumps([outcome.ended, f'{log}{outcome.detail or str()}']))"
        become = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        own = {"HOME": place, "XDG_CACHE_HOME": place, "XDG_CONFIG_HOME": place, "PYTHONDONTWRITEBYTECODE": "1"}
        own["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        env = {**os.environ, **own}
        done = subprocess.run(
            [python, "-c", text],
            env=env,
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            **become,
        )
        assert done.returncode == 0, done.stderr
        ended, log = json.loads(done.stdout)
        return ended, log


def python_for_all() -> str:
    """A Python that every user can run and that has our version: ours, or the system's."""
    system = Path("/usr/bin", f"python3.{sys.version_info.minor}")
    if hidden := _hidden_from_others(PACKAGE):
        pytest.skip(f"another user cannot read {hidden}")
    if not (hidden := _hidden_from_others(Path(sys.base_prefix))):
        return sys.executable
    if not system.exists():
        pytest.skip(f"another user cannot read {hidden}, and there is no {system}")
    return str(system)


def _hidden_from_others(path: Path) -> Path | None:
    return next((folder for folder in (path, *path.parents) if not folder.stat().st_mode & 0o001), None)


def wait(condition: Any, seconds: float = 60) -> None:
    wait_until(condition, "what the test waits for is true", seconds)
