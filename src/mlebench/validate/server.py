"""The format check over HTTP, for agents that ask during a run: `GET /health` and `POST /validate`.

Uploads are untrusted. Their size, their number and their time are bounded; they go to unnamed files, and their own
names are ignored. A competition's id is looked up among those that exist and is never used as a path.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from mlebench.core import serve as http
from mlebench.core.isolate import Calls, start
from mlebench.core.serve import ServerLimits
from mlebench.registry import Competition
from mlebench.validate.isolated_check import PRELOAD, CheckLimits, HttpAnswer, check, fault

logger = logging.getLogger(__name__)

EXPERIMENT = "exp-id"  # the header, or the query, that names a competition


@dataclass(frozen=True)
class ValidatorLimits:
    """What all clients together may use."""

    body: int = 1 << 30  # bytes of a request
    seconds: float = 300  # to upload it
    server: ServerLimits = ServerLimits()  # noqa: RUF009 it is frozen
    checks: int = 2  # at a time; others wait
    check: CheckLimits = field(default_factory=CheckLimits)


class Validator:
    """Answers for one competition, whatever a request calls it, or for whichever of the known ones it names."""

    def __init__(
        self,
        known: Sequence[str],
        find: Callable[[str], Competition],
        *,
        default: str | None = None,
        only: bool = False,
        limits: ValidatorLimits = ValidatorLimits(),  # noqa: B008 it is frozen
    ):
        self._known, self._find, self._default, self._only = frozenset(known), find, default, only
        self.limits = limits
        self.calls = Calls(limits.checks)

    async def health(self, _: Request) -> JSONResponse:
        return _response(HttpAnswer(200, {"status": "running"}))

    async def validate(self, request: Request) -> JSONResponse:
        try:
            async with asyncio.timeout(self.limits.seconds):
                upload = await self._received(request)
        except TimeoutError:
            return _response(
                fault(408, "The upload took too long.", f"It may take at most {self.limits.seconds:g} seconds.")
            )
        except _RefusedError as error:
            return _response(error.answer)
        with upload:
            try:
                competition = self._find(self._chosen(request))
            except _RefusedError as error:
                return _response(error.answer)
            answer = self.calls.submit(check, upload.fileno(), competition, self.limits.check)
            return _response(await asyncio.wrap_future(answer))

    def _chosen(self, request: Request) -> str:
        if self._only and self._default:
            return self._default  # by any name: an agent must not learn which of them is the right one
        id = request.headers.get(EXPERIMENT) or request.query_params.get(EXPERIMENT) or self._default
        if id is None:
            raise _RefusedError(400, "No competition.", f"Name the competition in the header `{EXPERIMENT}`.")
        if id not in self._known:
            raise _RefusedError(400, "Unknown competition.", f"There is no competition {id[:100]!r}.")
        return id

    async def _received(self, request: Request) -> Any:
        """The file from a form, in an unnamed temporary file."""
        parser = MultiPartParser(request.headers, self._bounded(request), max_files=1, max_fields=16)
        try:
            form = await parser.parse()
        except (MultiPartException, KeyError) as error:
            raise _RefusedError(400, "Not a form.", f"Send the submission as multipart field `file`: {error}") from None
        except ClientDisconnect:
            raise _RefusedError(400, "The upload was cut off.", "The connection ended before the file did.") from None
        except OSError as error:  # no room for it
            logger.error("an upload could not be stored: %s", error)
            raise _RefusedError(507, "The upload could not be stored.", str(error.strerror)) from None
        upload = form.get("file")
        if upload is None or isinstance(upload, str):
            await form.close()
            raise _RefusedError(400, "No file.", "Send the submission as multipart field `file`, with a file name.")
        upload.file.fileno()  # moves a small one, which is in memory so far, to the disk
        return upload.file

    async def _bounded(self, request: Request) -> AsyncGenerator[bytes, None]:
        left = self.limits.body
        async for part in request.stream():
            left -= len(part)
            if left < 0:
                raise _RefusedError(413, "The file is too large.", f"At most {self.limits.body} bytes are read.")
            yield part


class _RefusedError(Exception):
    def __init__(self, status: int, error: str, details: str):
        super().__init__(error)
        self.answer = fault(status, error, details)


def _response(answer: HttpAnswer) -> JSONResponse:
    # One request per connection: a client that would keep it open without sending anything costs nothing.
    return JSONResponse(answer.body, answer.status, headers={"Connection": "close"})


def application(validator: Validator) -> Starlette:
    async def refused(_: Request, error: Exception) -> JSONResponse:
        status = getattr(error, "status_code", 404)
        return _response(fault(status, "There is no such page.", "Use GET /health or POST /validate."))

    async def failed(_: Request, __: Exception) -> JSONResponse:
        return _response(
            fault(500, "The validator failed.", "This is a fault of the benchmark, not of the submission.")
        )

    routes = [
        Route("/health", validator.health, methods=["GET"]),
        Route("/validate", validator.validate, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused, Exception: failed})


def serve(validator: Validator, sockets: list[socket.socket]) -> None:
    """HttpAnswer until a signal ends it."""
    start(*PRELOAD)  # while the server gets ready
    with validator.calls:
        http.serve(application(validator), sockets, validator.limits.server)
