"""The runner's end of a gateway: starts its process, keeps it during the run, and ends it."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, SandboxError
from mlebench.gateway.access import ModelAccess

BACKLOG = 256
PATIENCE = 10.0  # seconds for the process to record the calls in progress
# Variables that hold a provider's address, with and without OpenAI's /v1.
_WITH_VERSION = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_BARE = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "ANTHROPIC_API_URL", "GOOGLE_GEMINI_BASE_URL")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
MODEL_VARIABLE = "MLEBENCH_MODEL"


class GatewayProxy:
    """A context manager: the gateway runs inside it, and leaves nothing but its records."""

    def __init__(self, token: str, access: ModelAccess, work: Path, seconds: float):
        self.access = access
        self.key_of_run = f"sk-mlebench-{secrets.token_urlsafe(24)}"
        self._spec = {
            "access": msgspec.to_builtins(access.facts()),
            "key": access.key(),
            "token": self.key_of_run,
            "use": str(paths.usage_file(work)),
            "trace": str(paths.model_calls(work)),
            "seconds": seconds,
        }
        # Short, local and private: a socket's path has at most 108 bytes, and shared disks cannot hold one.
        self.folder = Path(tempfile.mkdtemp(prefix=paths.proxy_prefix(token)))
        self.socket = self.folder / "model.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "GatewayProxy":
        hidden = {self.access.key_env} if self.access.key_env else set()
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.socket))
            self.socket.chmod(0o666)
            listening.listen(BACKLOG)  # clients can connect before the process is ready
            try:
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-P", "-m", "mlebench.gateway.process", str(listening.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    env={name: value for name, value in os.environ.items() if name not in hidden},
                    pass_fds=[listening.fileno()],
                    start_new_session=True,  # Ctrl-C at a terminal is the runner's business
                )
            except OSError as error:
                raise SandboxError(f"the gateway cannot be started: {error}") from error
        self._tell((json.dumps(self._spec) + "\n").encode())
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._tell(None)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)  # a plain process may have left anything there

    @property
    def has_died(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def variables(self, port: int, asked_for: Mapping[str, str]) -> dict[str, str]:
        """The agent's variables. Secrets it asks for become its run's token, or addresses of the proxy."""
        root = f"http://127.0.0.1:{port}"
        fixed = {
            **dict.fromkeys(_WITH_VERSION, f"{root}/v1"),
            **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), root),
            **dict.fromkeys(KEYS, self.key_of_run),
            MODEL_VARIABLE: self.access.models[0],
        }
        secrets = {}
        for variable, secret in asked_for.items():
            if _is_address(variable, secret):
                secrets[variable] = root if {variable, secret} & {*_BARE} else f"{root}/v1"
            else:
                secrets[variable] = self.key_of_run
        return secrets | fixed

    def _tell(self, data: bytes | None) -> None:
        stdin = self._process.stdin if self._process else None
        if stdin is None:
            return
        try:
            if data is None:
                stdin.close()
            else:
                stdin.write(data)
                stdin.flush()
        except OSError:
            pass  # it has died, which is noticed elsewhere


def refuse_other_secrets(names: Iterable[tuple[str, str]]) -> None:
    """Other secrets are useless under `--network model`. Takes pairs of variable and secret."""
    for variable, secret in names:
        if not _is_key(variable, secret) and not _is_address(variable, secret):
            raise PrerequisiteError(
                f"the agent asks for the secret {secret}, which is not a model provider's key (…_API_KEY): "
                "no secret enters a sandbox with `--network model`; `--network full` would let it in"
            )


def _is_key(variable: str, secret: str) -> bool:
    return variable.endswith("_API_KEY") or secret.endswith("_API_KEY")


def _is_address(variable: str, secret: str) -> bool:
    return bool({variable, secret} & {*_WITH_VERSION, *_BARE})
