"""The runner's end of a service: a process of ours that answers one run on a unix socket, as long as the run lasts."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

from mlebench.core import paths
from mlebench.core.errors import SandboxError

BACKLOG = 256
PATIENCE = 10.0  # seconds for the process to record what is in progress


class Service:
    """A context manager: the process runs inside it, and leaves nothing but its records.

    `module` is run with `run_service` of `core.service_process`, which gets `spec`; the process does not get the
    environment variables in `hidden`.
    """

    def __init__(self, noun: str, module: str, token: str, spec: dict[str, Any], hidden: Collection[str] = ()):
        self._noun, self._module, self._spec, self._hidden = noun, module, spec, hidden
        # Short, local and private: a socket's path has at most 108 bytes, and shared disks cannot hold one.
        self.folder = Path(tempfile.mkdtemp(prefix=paths.proxy_prefix(token)))
        self.socket = self.folder / "service.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.socket))
            self.socket.chmod(0o666)
            listening.listen(BACKLOG)  # clients can connect before the process is ready
            try:
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-P", "-m", self._module, str(listening.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    env={name: value for name, value in os.environ.items() if name not in self._hidden},
                    pass_fds=[listening.fileno()],
                    start_new_session=True,  # Ctrl-C at a terminal is the runner's business
                )
            except OSError as error:
                raise SandboxError(f"{self._noun} cannot be started: {error}") from error
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
