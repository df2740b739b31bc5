"""The validator's proxy: a socket bound into the agent's sandbox, with the validator's own sandbox behind it.

The validator parses what a hostile agent sends. So it runs where only public files and this package are visible, with
no network and its own limits. It is started at the first connection. What passes through is bounded.
"""

import contextlib
import os
import socket
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path

from mlebench.core import paths
from mlebench.core.isolate import thread_variables
from mlebench.core.memory import total_memory
from mlebench.core.outcomes import OVER_DISK
from mlebench.records.group import Limits
from mlebench.registry import Competition
from mlebench.run.signals import stop_signals_blocked
from mlebench.sandbox import helper_sandboxes
from mlebench.sandbox.base import HOME, Bind, Task, interpreter_prefixes
from mlebench.sandbox.collect import remove_tree
from mlebench.sandbox.session import SupervisorClient

AT_ONCE = 16
IDLE = 120.0  # seconds without a byte
LONGEST = 900.0  # seconds for one request
LARGEST = 8 << 30  # bytes in one direction
MEMORY = 16 << 30  # bytes, for all of its checks
DISK = 40 << 30  # bytes, for all uploads at a time
SHARE_OF_DISK = 4  # at most this part of what the agent may write: it must be seen who fills the disk
STARTS = 50  # how often a validator that dies is restarted


class ValidatorProxy:
    """A context manager: the proxy is open inside it, and leaves nothing behind."""

    def __init__(
        self,
        token: str,
        competition: Competition,
        public: Path,
        hidden: tuple[Path, ...] = (),
        disk: int | None = None,
    ):
        self._token = token
        self._disk = min(DISK, (disk or SHARE_OF_DISK * DISK) // SHARE_OF_DISK)
        self._competition = competition
        self._public = public
        self._hidden = hidden
        # Short, local and private: a socket's path has at most 108 bytes, and shared disks cannot hold one.
        self.folder = Path(tempfile.mkdtemp(prefix=paths.proxy_prefix(token)))
        self.socket = self.folder / "proxy.sock"
        self._server = socket.socket(socket.AF_UNIX)
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._session: SupervisorClient | None = None
        self._starts = 0
        self._has_filled_disk = False
        self.sandbox = next(sandbox for sandbox in helper_sandboxes() if sandbox.fault() is None)

    def __enter__(self) -> "ValidatorProxy":
        self._server.bind(str(self.socket))
        self.socket.chmod(0o666)
        self._server.listen(AT_ONCE)
        with stop_signals_blocked():  # they are for the main thread
            threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts; closing alone would not
        self._server.close()
        with self._lock:
            self._starts = STARTS
            if self._session:
                self._session.stop()
                while self._session.poll() is None:
                    time.sleep(0.01)
        remove_tree(self.folder)

    def heartbeat(self) -> None:
        session = self._session  # another thread may replace it
        if session:
            session.heartbeat()

    @property
    def has_filled_disk(self) -> bool:
        """Whether uploads took more of the disk than they may."""
        with self._lock:
            self._drop_ended_session()
            return self._has_filled_disk

    def _drop_ended_session(self) -> None:
        if self._session and (outcome := self._session.poll()) is not None:
            self._has_filled_disk |= outcome.ended == OVER_DISK
            self._session = None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
            except RuntimeError:  # no more threads on this machine; that may pass
                client.close()
                self._room.release()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError), self._connect() as server:
                deadline = time.monotonic() + LONGEST
                back = threading.Thread(target=_pump, args=(server, client, deadline), daemon=True)
                back.start()
                _pump(client, server, deadline)
                back.join()
        finally:
            self._room.release()

    def _connect(self) -> socket.socket:
        """A connection to the validator, which is started if necessary."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with self._lock:
                self._drop_ended_session()
                if self._session is None:
                    if self._starts >= STARTS:
                        break
                    self._starts += 1
                    self._session = self._start()
            with contextlib.suppress(OSError):
                return _connect(self.folder / "work" / "home" / "v.sock")
            time.sleep(0.02)
        raise ConnectionError("the validator does not answer")

    def _start(self) -> SupervisorClient:
        work = self.folder / "work"
        remove_tree(work)
        (work / "home").mkdir(parents=True)
        (work / "tmp").mkdir()
        public = Bind(self._public, "/public")
        command = [sys.executable, "-P", "-m", "mlebench", "validate", "--serve"]
        command += ["--unix", f"{self.sandbox.home(work)}/v.sock", "--public", self.sandbox.path_of(public)]
        command += ["--competition-id", self._competition.id, "--profile", self._competition.profile]
        command += ["--memory", str(min(MEMORY, total_memory() // 3))]  # in there, no control group can be seen
        external = [str(path) for path in paths.competition_path()]
        task = Task(
            name=f"{self._token}v{self._starts}",
            command=tuple(command),
            work=work,
            limits=Limits(
                seconds=10 * 24 * 3600.0,
                memory=min(MEMORY, total_memory()),
                cpus=2,
                processes=256,
                disk=self._disk,
                inodes=10_000,
            ),
            binds=(public, *(Bind(path, str(path)) for path in (*_own_python(), *_own_code()))),
            hidden=self._hidden,
            own_cpus=False,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": HOME,
                "TMPDIR": "/tmp",  # noqa: S108 its own
                "LANG": "C.UTF-8",
                "PYTHONPATH": os.pathsep.join(_search_path()),
                paths.COMPETITION_PATH_VARIABLE: os.pathsep.join(external),
                **thread_variables(),
            },
        )
        return SupervisorClient(task, self.sandbox.launch(task))


def remove_proxy(token: str) -> None:
    """Remove what is left of a proxy that was open when its runner was killed."""
    for sandbox in helper_sandboxes():
        sandbox.remove_leftovers(token)
    for folder in Path(tempfile.gettempdir()).glob(paths.proxy_prefix(token) + "*"):
        remove_tree(folder)


def _search_path() -> list[str]:
    return [entry for entry in sys.path if entry and Path(entry).is_dir()]


def _own_python() -> list[Path]:
    """Where this program and its libraries are: folders, none of them inside another."""
    wanted = [*interpreter_prefixes(Path(sys.prefix)), *map(Path, _search_path()), *paths.competition_path()]
    wanted = [path for path in wanted if not path.is_relative_to("/usr")]
    return [
        path for path in dict.fromkeys(wanted) if not any(path != top and path.is_relative_to(top) for top in wanted)
    ]


def _own_code() -> list[Path]:
    """Our own code, which a sandbox hides unless it is bound explicitly."""
    package = paths.module_dir()
    return [package, *package.parent.glob("mlebench-*.dist-info"), *paths.competition_path()]


def _connect(path: Path) -> socket.socket:
    """Connect to what must be a real socket: a link in its place could lead to any service of the host."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise ConnectionError("there is no socket")
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(f"/proc/self/fd/{descriptor}")
        except OSError:
            server.close()
            raise
        return server
    finally:
        os.close(descriptor)


def _pump(source: socket.socket, target: socket.socket, deadline: float) -> None:
    passed = 0
    with contextlib.suppress(OSError):
        while passed < LARGEST and (remaining := deadline - time.monotonic()) > 0:
            source.settimeout(min(IDLE, remaining))
            data = source.recv(1 << 16)
            if not data:
                break
            target.sendall(data)
            passed += len(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
