"""Serves an ASGI application over HTTP, to clients that may be hostile."""

import asyncio
import logging
import signal
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mlebench.core.errors import PrerequisiteError

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ServerLimits:
    """What all clients together may use; uvicorn itself does not mind those that open a connection and say nothing."""

    connections: int = 64  # at a time; others are cut
    header_seconds: float = 20  # from a connection to the end of its first header
    idle_seconds: int = 5  # between two requests


def server_of(app: Any, limits: ServerLimits = ServerLimits()) -> uvicorn.Server:  # noqa: B008 it is frozen
    """A server for an event loop of the caller's own; h11 reads requests strictly."""

    class Bounded(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            self.loop.call_later(limits.header_seconds, self._cut_unless_asked)

        def _cut_unless_asked(self) -> None:
            if self.cycle is None:
                self.transport.abort()

    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Bounded,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(app: Any, sockets: list[socket.socket], limits: ServerLimits = ServerLimits()) -> None:  # noqa: B008
    """Answer until a signal ends it."""
    server_of(app, limits).run(sockets=sockets)


@contextmanager
def listening(host: str, ports: Sequence[int], unix: Path | None) -> Iterator[list[socket.socket]]:
    """Bound sockets; the unix socket's file is removed when they are closed, even if a signal ends the server."""
    signal.signal(signal.SIGTERM, _stop)  # uvicorn also re-raises the signal that ended it after cleaning up
    sockets: list[socket.socket] = []
    try:
        for port in ports:
            sockets.append(_bound(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port)))
            logger.info("listening on http://%s:%d", *sockets[-1].getsockname()[:2])
        if unix:
            _remove_stale(unix)
            sockets.append(_bound(socket.AF_UNIX, str(unix)))
            unix.chmod(0o666)  # an agent has another user id; the folder's mode decides who may use it
            logger.info("listening on %s", unix)
        yield sockets
    finally:
        if unix and sockets and sockets[-1].family == socket.AF_UNIX:
            unix.unlink(missing_ok=True)
        for bound in sockets:
            bound.close()


def _stop(*_: object) -> NoReturn:
    raise SystemExit(0)


def _bound(family: int, address: Any) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen()  # clients may connect as soon as they read the address, before uvicorn is ready
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        bind, option = (
            (f"{address[0]}:{address[1]}", "--host or --port") if isinstance(address, tuple) else (address, "--unix")
        )
        raise PrerequisiteError(f"cannot listen on {bind}: {reason}; choose another with {option}") from None
    return bound


def _remove_stale(path: Path) -> None:
    """Remove a socket that a killed server left behind; anything else stays, and binding fails."""
    with suppress(FileNotFoundError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if stat.S_ISSOCK(path.lstat().st_mode):
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
