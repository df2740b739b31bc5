"""The index as its run sees it: the simple repository API, and the files that it lists."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mlebench.core.files import write_whole
from mlebench.core.untrusted import one_line
from mlebench.packages.project import (
    HTML,
    JSON,
    METADATA,
    PLAIN_HTML,
    PackageFile,
    canonical,
    is_json_wanted,
    list_page,
    project_page,
)
from mlebench.packages.refusals import RefusedError, limit_reached, not_found
from mlebench.packages.sources import LARGEST_METADATA, Source
from mlebench.records.usage import FetchedFile, PackageUsage, package_usage_text

MOST_FILES = 2000  # that a run may fetch
REQUESTS_PER_MINUTE = 1200
PIECE = 1 << 20

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True)
class _Page:
    kind: str
    content: bytes


@dataclass(frozen=True)
class _OpenFile:
    stream: BinaryIO | None  # None: only its size is wanted
    size: int


class PackageIndex:
    """An ASGI application. `limit`: how many bytes of files a run may fetch; each file counts once."""

    def __init__(self, source: Source, usage: Path, *, allow: list[str] | None = None, limit: int | None = None):
        self._source, self._usage = source, usage
        self._allow = None if allow is None else set(allow)
        self._limit = limit
        self._allowance = _Allowance(REQUESTS_PER_MINUTE)
        self._files: dict[str, FetchedFile] = {}
        self._requests = 0
        self._refusals: dict[str, int] = {}
        self._bytes = 0
        self._expected = 0  # bytes of files that are being fetched
        self._unsized = asyncio.Lock()  # files whose size is not known are fetched one at a time
        self._metadata_bytes: dict[str, int] = {}
        self._written: str | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:  # noqa: ARG002
        if scope["type"] != "http":
            return
        self._requests += 1
        try:
            answer = await self._answer(scope)
        except RefusedError as error:
            self._refusals[error.kind] = self._refusals.get(error.kind, 0) + 1
            line = one_line(error, 500)
            await _respond(send, error.status, "text/plain; charset=utf-8", f"mlebench: {line}\n".encode())
            return
        wants_content = scope["method"] == "GET"
        if isinstance(answer, _Page):
            await _respond(send, 200, answer.kind, answer.content, wants_content=wants_content)
        else:
            await _pass_on(send, answer, wants_content=wants_content)

    async def _answer(self, scope: MutableMapping[str, Any]) -> _Page | _OpenFile:
        if not self._allowance.take():
            message = f"a run may make {REQUESTS_PER_MINUTE} requests a minute to the index of packages: wait"
            raise RefusedError(429, "too_many_requests", message)
        if scope["method"] not in ("GET", "HEAD"):
            raise RefusedError(405, "method_not_allowed", "the index of packages answers GET only")
        match scope["path"].strip("/").split("/"):
            case ["simple"]:
                return self._list(scope)
            case ["simple", name]:
                return await self._page(name, scope)
            case ["files", name, file]:
                return await self._file(name, file, scope)
            case _:
                raise not_found("there are only /simple/, /simple/NAME/ and the files that these list")

    def _list(self, scope: MutableMapping[str, Any]) -> _Page:
        names = self._source.names()
        if names is None and self._allow is None:
            raise not_found("the projects of this index are not listed: ask for one by its name")
        shown = sorted(self._allow or ()) if names is None else [name for name in names if self._is_allowed(name)]
        return _page(scope, lambda as_json: list_page(shown, as_json=as_json))

    async def _page(self, name: str, scope: MutableMapping[str, Any]) -> _Page:
        project = await self._source.project(self._allowed(name))
        if project.note:
            raise not_found(project.note)
        return _page(scope, lambda as_json: project_page(project, as_json=as_json))

    async def _file(self, name: str, file_name: str, scope: MutableMapping[str, Any]) -> _OpenFile:
        project = await self._source.project(self._allowed(name))
        file = project.file(file_name)
        if file is None:
            raise not_found(f"the index lists no such file of {project.name}")
        if scope["method"] == "HEAD" and file.size is not None:
            return _OpenFile(None, file.size)
        async with self._unsized if file.size is None else nullcontext():
            stream = await self._fetched(file)
        size = stream.seek(0, 2)
        stream.seek(0)
        try:
            self._record(file, size)
        except RefusedError:
            stream.close()
            raise
        return _OpenFile(stream, size)

    async def _fetched(self, file: PackageFile) -> BinaryIO:
        left = self._require_allowance(file)
        self._expected += file.size or 0
        try:
            return await self._source.open(file, left)
        finally:
            self._expected -= file.size or 0

    def _allowed(self, name: str) -> str:
        """The canonical form of a name that may be asked for."""
        project = canonical(name)
        if project is None:
            raise not_found("that is not the name of a project")
        if not self._is_allowed(project):
            raise RefusedError(403, "not_allowed", f"{project} is not among the packages that this run may have")
        return project

    def _is_allowed(self, project: str) -> bool:
        return self._allow is None or project in self._allow

    def _require_allowance(self, file: PackageFile) -> int | None:
        """How many bytes a file may have; None if there is no limit."""
        if file.sha256 in self._files or file.sha256 in self._metadata_bytes:
            return None
        if len(self._files) + len(self._metadata_bytes) >= MOST_FILES:
            raise limit_reached(f"this run has fetched {MOST_FILES} files, and may fetch no more")
        left = None if self._limit is None else max(0, self._limit - self._bytes - self._expected)
        if file.name.endswith(METADATA):
            return LARGEST_METADATA if left is None else min(left, LARGEST_METADATA)
        if left is not None and (file.size or 0) > left:
            raise limit_reached(f"{file.name} is larger than what is left of --packages-limit ({left} bytes)")
        return left

    def _record(self, file: PackageFile, size: int) -> None:
        """Count a file, once; others may have been fetched meanwhile."""
        if file.sha256 in self._files or file.sha256 in self._metadata_bytes:
            return
        if self._limit is not None and self._bytes + size > self._limit:
            raise limit_reached(f"{file.name} is larger than what is left of --packages-limit")
        self._bytes += size
        if file.name.endswith(METADATA):
            self._metadata_bytes[file.sha256] = size
        else:
            self._files[file.sha256] = FetchedFile(
                name=file.project, version=file.version, file=file.name, sha256=file.sha256, size=size
            )

    @property
    def usage(self) -> PackageUsage:
        refusals = dict(sorted(self._refusals.items()))
        return PackageUsage(
            files=list(self._files.values()),
            bytes=self._bytes,
            requests=self._requests,
            refused=sum(refusals.values()),
            refusals=refusals,
        )

    def write(self) -> None:
        """Put the counts on disk, if they have changed."""
        text = package_usage_text(self.usage)
        if text != self._written:
            with suppress(OSError):  # the disk may be full; the next write may succeed
                write_whole(self._usage, text)
                self._written = text

    async def close(self) -> None:
        await self._source.close()
        self.write()


class _Allowance:
    """So many requests a minute, and as many at once."""

    def __init__(self, per_minute: int):
        self._most = self._left = float(per_minute)
        self._seen = time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._seen) * self._most / 60)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _page(scope: MutableMapping[str, Any], content: Callable[[bool], bytes]) -> _Page:
    accept = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"accept")
    if is_json_wanted(accept):
        return _Page(JSON, content(True))
    return _Page(HTML if HTML in accept else PLAIN_HTML, content(False))


async def _respond(send: Send, status: int, kind: str, content: bytes, *, wants_content: bool = True) -> None:
    await _start(send, status, kind, len(content))
    await send({"type": "http.response.body", "body": content if wants_content else b""})


async def _pass_on(send: Send, file: _OpenFile, *, wants_content: bool) -> None:
    with file.stream or nullcontext() as stream:
        await _start(send, 200, "application/octet-stream", file.size)
        left = file.size if stream and wants_content else 0
        while stream and left:
            piece = await asyncio.to_thread(stream.read, min(left, PIECE))
            if not piece:
                raise OSError("a file became shorter while it was passed on")
            left -= len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, status: int, kind: str, length: int) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
