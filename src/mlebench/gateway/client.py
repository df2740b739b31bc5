"""HTTP/1.1 to one host, on asyncio's streams: POST, with an answer that arrives piece by piece.

A general client takes several times as long for each call and each piece, and with fifty streams agents would wait
for that. Connections are reused. Proxies and certificates are found as other programs find them.
"""

import asyncio
import base64
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from mlebench.gateway.wire import GarbageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
LARGEST_HEAD = 64 << 10
LARGEST_CHUNK = 64 << 20
PIECE = 64 << 10
KEPT = 64  # idle connections kept for later calls
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?")


class SilentError(Exception):
    """Nothing arrived for too long, though the connection is open."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    pieces: AsyncIterator[bytes]


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing() or self.reader.exception())


class Client:
    """Raises OSError when a connection fails, SilentError and GarbageError."""

    def __init__(self, endpoint: str, connect: float, idle: float):
        self._to = urlsplit(endpoint)
        self._connect_seconds, self._idle = connect, idle
        self._tls = ssl.create_default_context() if self._to.scheme == "https" else None
        self._proxy = _proxy_for(self._to)
        self._free: list[_Connection] = []

    def close(self) -> None:
        for connection in self._free:
            connection.writer.transport.abort()

    @asynccontextmanager
    async def post(
        self, url: str, content: bytes, headers: dict[str, str], sent: Callable[[], None] = lambda: None
    ) -> AsyncIterator[Answer]:
        """Send a request, then call `sent`. The connection is reused if the answer was read to its end."""
        connection = await self._connection()
        is_whole = False
        try:
            connection.writer.write(self._request(url, content, headers))
            await connection.writer.drain()
            sent()
            minor, status, found, rest = await self._head(connection)
            body = _Body(connection, self._idle, found, rest)
            yield Answer(status, found, body.pieces())
            is_whole = body.is_whole and minor == b"1" and "close" not in found.get("connection", "").lower()
        finally:
            if is_whole and len(self._free) < KEPT:
                self._free.append(connection)
            else:
                connection.writer.transport.abort()

    def _request(self, url: str, content: bytes, headers: dict[str, str]) -> bytes:
        parts = urlsplit(url)
        target = url if self._proxy and self._tls is None else parts.path
        lines = [f"POST {target} HTTP/1.1", f"host: {parts.netloc}", f"content-length: {len(content)}"]
        if self._proxy and self._tls is None:
            lines += _authorization(self._proxy)
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + content

    async def _connection(self) -> _Connection:
        while self._free:
            connection = self._free.pop()
            if connection.is_usable():
                return connection
            connection.writer.transport.abort()
        try:
            async with asyncio.timeout(self._connect_seconds):
                return await self._connect()
        except TimeoutError:
            raise ConnectionError(f"it does not answer within {self._connect_seconds:g} s") from None

    async def _connect(self) -> _Connection:
        host, port = _address(self._to)
        if self._proxy is None:
            context = {"ssl": self._tls, "server_hostname": host} if self._tls else {}
            return _Connection(*await asyncio.open_connection(host, port, limit=PIECE, **context))
        connection = _Connection(*await asyncio.open_connection(*_address(self._proxy), limit=PIECE))
        if self._tls:
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            lines = [f"CONNECT {place} HTTP/1.1", f"host: {place}", *_authorization(self._proxy), "", ""]
            try:
                connection.writer.write("\r\n".join(lines).encode("latin-1"))
                _, status, _, _ = await self._head(connection)
                if status != 200:
                    raise ConnectionError(f"the proxy {self._proxy.hostname} answers {status}")
                await connection.writer.start_tls(self._tls, server_hostname=host)
            except BaseException:
                connection.writer.transport.abort()
                raise
        return connection

    async def _head(self, connection: _Connection) -> tuple[bytes, int, dict[str, str], bytes]:
        """Version, status and headers of an answer, and as much of its body as has arrived."""
        buffer = bytearray()
        while True:
            while (end := buffer.find(b"\r\n\r\n")) < 0:
                if len(buffer) > LARGEST_HEAD:
                    raise GarbageError("its header does not end")
                buffer += await _some(connection, self._idle)
            first, *lines = bytes(buffer[:end]).split(b"\r\n")
            del buffer[: end + 4]
            match = _STATUS.fullmatch(first)
            if match is None:
                raise GarbageError(f"it does not speak HTTP: {first[:100]!r}")
            if match[2][:1] != b"1":
                headers = _headers(lines)
                if match[2] in (b"204", b"304"):  # these have no body, and need not say so
                    headers["content-length"] = "0"
                return match[1], int(match[2]), headers, bytes(buffer)


class _Body:
    def __init__(self, connection: _Connection, idle: float, headers: dict[str, str], rest: bytes):
        self._connection, self._idle, self._buffer = connection, idle, bytearray(rest)
        self._coding, self._length = headers.get("transfer-encoding", "").lower(), headers.get("content-length")
        self.is_whole = False
        if headers.get("content-encoding", "identity").lower() != "identity" or self._coding not in ("", "chunked"):
            raise GarbageError("its answer is in an encoding that was not asked for")

    async def pieces(self) -> AsyncIterator[bytes]:
        if self._coding:
            found = self._chunks()
        elif self._length is not None:
            found = self._counted(int(self._length))
        else:
            found = self._until_closed()
        async for piece in found:
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            piece = bytearray()
            while (size := self._whole_chunk()) is not None:
                start = self._buffer.find(b"\r\n") + 2
                piece += self._buffer[start : start + size]
                del self._buffer[: start + size + 2]
                self.is_whole = size == 0
            if piece:
                yield bytes(piece)
            if self.is_whole:
                return
            self._buffer += await _some(self._connection, self._idle)

    def _whole_chunk(self) -> int | None:
        """The size of the chunk that the buffer begins with; None if it has not arrived yet, or was the last."""
        end = self._buffer.find(b"\r\n")
        if self.is_whole or end < 0:
            if len(self._buffer) > LARGEST_HEAD:
                raise GarbageError("a chunk of its answer has no size")
            return None
        match = _SIZE.fullmatch(self._buffer, 0, end)
        if match is None or (size := int(match[1], 16)) > LARGEST_CHUNK:
            raise GarbageError("a chunk of its answer has no size")
        if size == 0:  # trailers are ignored, but must have arrived
            ends = self._buffer.startswith(b"\r\n", end + 2) or self._buffer.find(b"\r\n\r\n", end) >= 0
            return 0 if ends else None
        return size if len(self._buffer) >= end + 2 + size + 2 else None

    async def _counted(self, left: int) -> AsyncIterator[bytes]:
        piece = bytes(self._buffer[:left])
        is_exact = len(self._buffer) <= left
        while True:
            left -= len(piece)
            if piece:
                yield piece
            if not left:
                break
            piece = (await _some(self._connection, self._idle))[:left]
        self.is_whole = is_exact

    async def _until_closed(self) -> AsyncIterator[bytes]:
        if self._buffer:
            yield bytes(self._buffer)
        while True:
            try:
                yield await _some(self._connection, self._idle)
            except _ClosedError:
                return


class _ClosedError(ConnectionError):
    pass


async def _some(connection: _Connection, idle: float) -> bytes:
    try:
        async with asyncio.timeout(idle):
            data = await connection.reader.read(PIECE)
    except TimeoutError:
        raise SilentError from None
    if not data:
        raise _ClosedError("the endpoint closed the connection")
    return data


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        name, value = name.lower(), value.strip()
        if not colon or not name or name != name.strip() or (name in headers and name == "content-length"):
            raise GarbageError("its header cannot be read")
        headers[name] = value
    if not re.fullmatch(r"\d{1,12}", headers.get("content-length", "0"), re.ASCII):
        raise GarbageError("its header cannot be read")
    return headers


def _proxy_for(to: SplitResult) -> SplitResult | None:
    host = to.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    named = proxies.get(to.scheme) or proxies.get("all")
    return urlsplit(named if "://" in named else f"http://{named}") if named else None


def _authorization(proxy: SplitResult) -> list[str]:
    if not proxy.username:
        return []
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"proxy-authorization: Basic {base64.b64encode(pair.encode()).decode()}"]


def _address(to: SplitResult) -> tuple[str, int]:
    return to.hostname or "", to.port or (443 if to.scheme == "https" else 80)
