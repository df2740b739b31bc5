"""Where files come from: a folder of this machine, or one index on the network."""

import asyncio
import hashlib
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from mlebench.packages.cache import FileCache
from mlebench.packages.client import IndexClient
from mlebench.packages.folder import FolderFile, is_as_it_was
from mlebench.packages.index_pages import MalformedPageError, read_page
from mlebench.packages.project import HTML, JSON, PLAIN_HTML, PackageFile, Project
from mlebench.packages.refusals import RefusedError, index_failed, limit_reached, not_found

ACCEPT = f"{JSON}, {HTML};q=0.2, {PLAIN_HTML};q=0.1"
PAGE_SECONDS, FILE_SECONDS = 120.0, 3600.0
LARGEST_PAGE = 64 << 20
MOST_PAGE_BYTES = 512 << 20  # of all pages of a run, which stay in memory
MOST_NAMES = 5000  # that a run may ask for
LARGEST_METADATA = 16 << 20
PIECE = 1 << 16


class Source(Protocol):
    def names(self) -> list[str] | None:
        """The names of all projects; None if they are not listed."""

    async def project(self, name: str) -> Project: ...

    async def open(self, file: PackageFile, most: int | None) -> BinaryIO:
        """A file that one of its projects lists. `most`: how many bytes are left to the run."""
        ...

    async def close(self) -> None: ...


class FolderSource:
    """Wheels and source archives of a folder, as they were when the run began."""

    def __init__(self, folder: Path, files: Iterable[FolderFile]):
        self._folder = folder
        self._files = {file.name: file for file in files}
        self._projects: dict[str, list[PackageFile]] = {}
        for file in self._files.values():
            entry = PackageFile(file.name, file.project, file.version, file.name, file.sha256, file.size)
            self._projects.setdefault(file.project, []).append(entry)

    def names(self) -> list[str] | None:
        return sorted(self._projects)

    async def project(self, name: str) -> Project:
        if name not in self._projects:
            raise not_found(f"the folder of packages has no {name}")
        return Project(name, tuple(self._projects[name]))

    async def open(self, file: PackageFile, most: int | None) -> BinaryIO:  # noqa: ARG002 the disk's owner chose it
        try:
            stream = os.fdopen(os.open(self._folder / file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
        except OSError:
            raise not_found(f"{file.name} is gone") from None
        if not is_as_it_was(self._files[file.name], os.fstat(stream.fileno())):
            stream.close()
            raise RefusedError(409, "file_changed", f"{file.name} has changed since the run began")
        return stream

    async def close(self) -> None:
        pass


class IndexSource:
    """One index on the network. What it lists stays the same during a run; files are cached for all runs."""

    def __init__(self, index: str, cache: FileCache, before: datetime | None = None):
        self._index = index.rstrip("/")
        self._before = before
        self._cache = cache
        self._client = IndexClient()
        self._pages: dict[str, asyncio.Task[Project]] = {}
        self._page_bytes = 0
        self._downloads: dict[str, asyncio.Task[None]] = {}

    def names(self) -> list[str] | None:
        return None

    async def close(self) -> None:
        tasks = [task for task in (*self._pages.values(), *self._downloads.values()) if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        await self._client.close()

    async def project(self, name: str) -> Project:
        """Asked for once in a run; failures may pass, so they are tried again."""
        task = self._pages.get(name)
        if task is None or (task.done() and _has_failed(task)):
            if task is None and len(self._pages) >= MOST_NAMES:
                raise limit_reached(f"this run has asked for {MOST_NAMES} projects, and may ask for no more")
            task = self._pages[name] = asyncio.create_task(self._fetch_page(name))
        return await asyncio.shield(task)

    async def _fetch_page(self, name: str) -> Project:
        async with self._client.get(f"{self._index}/{name}/", ACCEPT, PAGE_SECONDS) as (url, response):
            content = bytearray()
            async for piece in response.aiter_raw():
                content += piece
                self._page_bytes += len(piece)
                if len(content) > LARGEST_PAGE:
                    raise index_failed(f"has a page for {name} of more than {LARGEST_PAGE >> 20} MiB")
                if self._page_bytes > MOST_PAGE_BYTES:
                    raise limit_reached(f"this run has read {MOST_PAGE_BYTES >> 20} MiB of the index's pages")
            try:
                kind = response.headers.get("content-type", "")
                return await asyncio.to_thread(read_page, name, url, kind, bytes(content), self._before)
            except MalformedPageError as error:
                raise index_failed(f"has a page for {name} that cannot be used: {error}") from None

    async def open(self, file: PackageFile, most: int | None) -> BinaryIO:
        cached = await asyncio.to_thread(self._cache.open, file.sha256)
        if cached is None:
            task = self._downloads.get(file.sha256)
            if task is None or task.done():
                task = self._downloads[file.sha256] = asyncio.create_task(self._fetch(file, most))
            await asyncio.shield(task)  # an agent that hangs up may ask again
            cached = await asyncio.to_thread(self._cache.open, file.sha256)
        if cached is None:
            raise index_failed(f"gave {file.name}, but the cache has lost it")
        if most is not None and os.fstat(cached.fileno()).st_size > most:
            cached.close()
            raise limit_reached(f"{file.name} is larger than what is left of --packages-limit")
        return cached

    async def _fetch(self, file: PackageFile, most: int | None) -> None:
        """Put a file into the cache, if it has the size and hash that the index states."""
        expected = file.size if file.size is not None else None
        if not await asyncio.to_thread(self._cache.make_room, expected or 0):
            raise RefusedError(507, "no_space", f"the host has no space for {file.name}")
        digest, received = hashlib.sha256(), 0
        async with self._client.get(file.url, "*/*", FILE_SECONDS) as (_, response):
            with self._cache.adding(file.sha256) as target:
                async for piece in response.aiter_raw(PIECE):
                    received += len(piece)
                    if expected is not None and received > expected:
                        raise index_failed(f"serves {file.name} with more than the {expected} bytes that it states")
                    if most is not None and received > most:
                        raise limit_reached(f"{file.name} is larger than what is left of --packages-limit")
                    digest.update(piece)
                    target.write(piece)
                if expected is not None and received != expected:
                    raise index_failed(f"serves {received} bytes of {file.name}, and states {expected}")
                if digest.hexdigest() != file.sha256:
                    raise index_failed(f"serves {file.name} with another hash than it states")


def _has_failed(task: "asyncio.Task[Project]") -> bool:
    """Whether a page may be there next time."""
    error = None if task.cancelled() else task.exception()
    return task.cancelled() or (error is not None and not (isinstance(error, RefusedError) and error.status == 404))
