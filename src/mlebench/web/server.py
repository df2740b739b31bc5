"""The pages over HTTP, for the person at this machine.

Requests change nothing, and can read nothing but pages, their data and the files of runs. The name in the Host header
must be one of ours: otherwise another site could point its own name at this address and read the answers.
What agents wrote is served as plain text, whatever it claims to be.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import UntrustedFileError, open_below
from mlebench.web.pages import page_at
from mlebench.web.render import ASSETS, to_html, to_json
from mlebench.web.site import Page, Site
from mlebench.web.site_reader import SiteReader

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
FILE_HEADERS = HEADERS | {"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CHUNK = 1 << 20


class Pages:
    def __init__(self, source: SiteReader):
        self._source = source
        self._assets = {path.name: path.read_bytes() for path in ASSETS.iterdir()}

    def home(self, _: Request) -> Response:
        return RedirectResponse("/index.html", headers=HEADERS)

    def html(self, request: Request) -> Response:
        site = self._source.site()
        page = page_at(site, f"{request.path_params['path']}.html")
        return self.missing(request) if page is None else _cached(request, to_html(page, site).encode(), "text/html")

    def json(self, request: Request) -> Response:
        page = page_at(self._source.site(), f"{request.path_params['path']}.html")
        return _missing() if page is None else _cached(request, to_json(page).encode(), "application/json")

    def missing(self, request: Request) -> Response:
        """A page with a way back, for readers; a line, for programs."""
        if "text/html" not in request.headers.get("accept", ""):
            return _missing()
        page = Page("404.html", "missing.html", "No such page")
        return Response(to_html(page, self._source.site(), root="/"), 404, HEADERS, "text/html")

    def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        body = self._assets.get(name)
        return _missing() if body is None else _cached(request, body, TYPES["." + name.rpartition(".")[2]])

    def file(self, request: Request) -> Response:
        """A file that a run left, named by its group, its run, and its path in the run's folder."""
        # The path as it was sent: a name with a quoted slash in it must not match any file.
        raw = request.scope["raw_path"].decode("ascii", "replace").removeprefix("/files/")
        parts = [unquote(part) for part in raw.split("/")]
        opened = _open(self._source.site(), parts)
        if opened is None:
            return self.missing(request)
        size = os.fstat(opened.fileno()).st_size
        return StreamingResponse(
            _chunks(opened, size),
            media_type="text/plain; charset=utf-8",
            headers=FILE_HEADERS | {"Content-Length": str(size)},
        )


def _open(site: Site, parts: list[str]) -> BinaryIO | None:
    name, run, *inside = parts if len(parts) > 2 else ("", "", "")
    group = site.group_named.get(name)
    if group is None or not any(run == where.root.name for where in group.run_paths()):
        return None
    try:
        return open_below(group.paths.root / run, inside)
    except (UntrustedFileError, PrerequisiteError):
        return None


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size > 0 and (data := file.read(min(CHUNK, size))):  # it may grow meanwhile
            size -= len(data)
            yield data


def _cached(request: Request, body: bytes, kind: str) -> Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = HEADERS | {"ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _missing() -> Response:
    return PlainTextResponse("There is no such page.\n", 404, headers=HEADERS)


class HostCheck:
    """Answers only requests for one of our own names; the port may be a tunnel's."""

    def __init__(self, app: ASGIApp, names: frozenset[str]):
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or _name(hosts[0]) not in self._names:
                text = "This server answers only to " + ", ".join(sorted(self._names)) + ".\n"
                await PlainTextResponse(text, 421, headers=HEADERS)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def application(source: SiteReader, names: tuple[str, ...] = ()) -> Starlette:
    pages = Pages(source)

    def route(path: str, answer: Callable[[Request], Response]) -> Route:
        return Route(path, answer, methods=["GET"])

    def refused(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        return pages.missing(request) if status == 404 else PlainTextResponse("Only GET.\n", status, headers=HEADERS)

    return Starlette(
        routes=[
            route("/", pages.home),
            route("/assets/{name}", pages.asset),
            route("/files/{path:path}", pages.file),
            route("/{path:path}.html", pages.html),
            route("/{path:path}.json", pages.json),
        ],
        middleware=[Middleware(HostCheck, names=frozenset((*LOCAL_NAMES, *names)))],
        exception_handlers={404: refused, 405: refused},
    )
