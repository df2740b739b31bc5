"""The gateway as its run sees it: a few paths, one token, and answers in the provider's format."""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from mlebench.core.untrusted import JsonBoundsError
from mlebench.gateway import policy, wire
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.accounting import COUNTED, CallLedger, FinishedCall, Reservation
from mlebench.gateway.apis import PATHS, Gemini, api_at, api_of, language_of
from mlebench.gateway.capacity import LARGE, CallMemory, MemoryPool, OverloadedError
from mlebench.gateway.estimate import CallEstimate, estimate_call
from mlebench.gateway.outage import BUDGET, PATIENCE, TIMEOUT, Outage, Outages
from mlebench.gateway.policy import AcceptedRequest, RequestRefusedError
from mlebench.gateway.trace import Trace
from mlebench.gateway.upstream import Exchange, Timeouts, Upstream, is_redactable

logger = logging.getLogger(__name__)

LARGEST_REQUEST = 32 << 20
MOST_VALUES = 1_000_000  # of a request's JSON; a prompt may consist of as many tokens
SLOWEST_UPLOAD = 300.0  # seconds
FREE = Reservation(0.0)
_MODEL_LISTS = (wire.MODELS, wire.GOOGLE_MODELS)

Headers = Mapping[str, str]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Gateway:
    """An ASGI application."""

    def __init__(
        self,
        access: ModelAccess,
        *,
        token: str,
        key: str | None,
        use: Path,
        trace: Path,
        seconds: float,
        timing: Timeouts = Timeouts(),  # noqa: B008 it is frozen
    ):
        self._access = access
        self._token = token.encode()
        self.ledger = CallLedger(access, use)
        self.outages = Outages()
        self.trace = Trace(trace, hide=key if is_redactable(key) else None)
        self.upstream = Upstream(access, key, timing, time.monotonic() + seconds)
        self._calls: set[asyncio.Task[None]] = set()
        self._memory = MemoryPool()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        try:
            if answer := self._answered_here(scope):
                await _respond(send, 200, answer)
                return
            await self._serve(path, _headers(scope), receive, send)
        except RequestRefusedError as error:
            self.ledger.refuse(error.kind)
            await _respond(send, error.status, language_of(path).error_body(error.status, error.kind, error.message))

    def _answered_here(self, scope: MutableMapping[str, Any]) -> dict[str, Any] | None:
        """The list of models. Only our own paths are answered, whatever the host."""
        path, method = scope["path"], scope["method"]
        api = api_at(path)
        listed = next((listed for listed in _MODEL_LISTS if f"{path}/".startswith(f"{listed}/")), None)
        if not api and not listed:
            known = ", ".join((*PATHS, *_MODEL_LISTS))
            raise RequestRefusedError(404, "not_found", f"There is no such path here. There are: {known}.")
        query = (
            parse_qs(scope["query_string"].decode("latin-1"))
            if path.startswith((wire.MODELS, wire.GOOGLE_MODELS))
            else {}
        )
        self._require_token(_headers(scope), query)
        if method != ("POST" if api else "GET"):
            raise RequestRefusedError(405, "method_not_allowed", f"{method[:20]} is not supported here.")
        if isinstance(api, Gemini) and api.is_sse and query.get("alt") != ["sse"]:
            raise RequestRefusedError(400, "invalid_request_error", "Streams are events here: ask for `?alt=sse`.")
        if api or not listed:
            return None
        models = wire.model_list(self._access.models)
        if path == listed:
            return models
        for entry in models["data"]:
            if entry["id"] == path.removeprefix(f"{listed}/"):
                return entry
        raise RequestRefusedError(404, "not_found", f"This run may use: {', '.join(self._access.models)}.")

    def _require_token(self, headers: dict[str, str], query: Mapping[str, list[str]]) -> None:
        key = headers.get("authorization", "").partition(" ")[2].strip()
        key = key or headers.get("x-api-key") or headers.get("x-goog-api-key") or query.get("key", [""])[0]
        token = key.encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(token, self._token):
            raise RequestRefusedError(401, "authentication_error", "This is not the token of this run.")

    async def _serve(self, path: str, headers: Headers, receive: Receive, send: Send) -> None:
        share = CallMemory(self._memory)
        try:
            body = await self._body(receive, share)
            work = asyncio.create_task(self._call(path, headers, body, send, share))
            gone = asyncio.create_task(_gone(receive))
            self._calls.add(work)
            try:
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                if not work.done():
                    work.cancel("the agent closed the connection")
                await asyncio.wait({work})
                self._calls.discard(work)
            if not work.cancelled():
                work.result()
        except OverloadedError:
            raise RequestRefusedError(
                429, "too_many_calls", "Too many calls are in progress: wait for some of them."
            ) from None
        finally:
            share.release()

    async def _body(self, receive: Receive, share: CallMemory) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(SLOWEST_UPLOAD):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestRefusedError(400, "invalid_request_error", "The request was cut off.")
                    piece = message.get("body", b"")
                    if len(body) + len(piece) > LARGEST_REQUEST:
                        raise RequestRefusedError(
                            413, "request_too_large", f"At most {LARGEST_REQUEST} bytes are read."
                        )
                    share.take_bytes(len(piece))
                    body += piece
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise RequestRefusedError(408, "timeout", "The request took too long to arrive.") from None

    async def _call(self, path: str, headers: Headers, raw: bytes, send: Send, share: CallMemory) -> None:
        """One call, from its request to its line in the trace; OverloadedError if there are too many."""
        begun = time.time()
        body: Any = None
        need: CallEstimate | None = None
        try:
            body = _parsed(raw, share)
            checked, need = self._checked(path, body, headers)
            for name in self.ledger.remove(checked.removed):
                logger.warning("the field %a is not known: it is removed from requests, see --allow-field", name)
            async with self.upstream.turns.turn():
                reservation = await self.ledger.reserve(need) if need else FREE
                exchange = _exchange(path, checked.body, send, share)
                exchange.is_large = len(raw) > LARGE
                await self._forward(exchange, body, checked, reservation)
        except RequestRefusedError as error:
            self.trace.write(_line(begun, path, body, status=error.status, error=error.message))
            if need and self.ledger.is_too_small_for(need):
                self.outages.failed(Outage(BUDGET, error.message))
            raise

    def _checked(
        self, path: str, body: dict[str, Any], headers: Headers
    ) -> tuple[AcceptedRequest, CallEstimate | None]:
        """The request as it may be passed on, and what it may use if there is a budget."""
        try:
            checked = policy.check(path, body, self._access, headers)
            is_free = api_of(path).is_free or self._access.budget is None
            return checked, None if is_free else estimate_call(path, checked)
        except RequestRefusedError:
            raise
        except Exception as error:  # an agent must not get past our own mistakes
            logger.warning("a request cannot be checked: %s", type(error).__name__)
            message = f"The request cannot be checked ({type(error).__name__}), and is not made."
            raise RequestRefusedError(400, "invalid_request_error", message) from None

    async def _forward(
        self,
        exchange: Exchange,
        body: dict[str, Any],
        checked: AcceptedRequest,
        reservation: Reservation,
    ) -> None:
        begun, clock = time.time(), time.monotonic()
        try:
            sent = policy.as_sent(exchange.path, checked.body, reservation.output)
            await self.upstream.call(exchange, sent, checked.headers)
        except asyncio.CancelledError:
            exchange.error = exchange.error or "the connection was closed before the answer was complete"
            raise
        except Exception as error:
            exchange.error = f"the gateway failed: {type(error).__name__}"
            raise
        finally:
            self._conclude(exchange, body, checked.model, reservation, begun, time.monotonic() - clock)
        await exchange.end()  # only once it is counted: the agent's next call must see the true budget

    def _conclude(
        self,
        exchange: Exchange,
        body: dict[str, Any],
        model: str,
        reservation: Reservation,
        begun: float,
        seconds: float,
    ) -> None:
        tokens = exchange.tokens
        ended = FinishedCall(model, tokens, seconds, exchange.retries, exchange.error, exchange.may_cost)
        cost = self.ledger.settle(reservation, ended)
        self._note_outcome(exchange, seconds)
        facts = {
            "answer": exchange.answer or (exchange.assembly and exchange.assembly.answer()),
            "status": exchange.status,
            "seconds": round(seconds, 4),
            "retries": exchange.retries,
            "usage": exchange.assembly.usage if exchange.assembly else exchange.usage,
            **{f"{name}_tokens": getattr(tokens, name) for name in COUNTED},
            "cost": cost,
            "error": exchange.error,
        }
        self.trace.write(_line(begun, exchange.path, body, **facts))

    def _note_outcome(self, exchange: Exchange, seconds: float) -> None:
        """Whether a call shows that the run has a model. Counting tokens shows nothing: it needs no quota."""
        if exchange.api.is_free:
            return
        if exchange.outage:
            is_own_load = exchange.is_large or self.upstream.turns.is_flooded(time.monotonic() - seconds)
            self.outages.failed(replace(exchange.outage, is_own_load=is_own_load))
        elif exchange.error is None or exchange.is_answered:  # an agent may hang up once it has read enough
            self.outages.answered()
        elif exchange.status is None and seconds >= PATIENCE:
            self.outages.failed(Outage(TIMEOUT, f"no answer within {seconds:.0f} s"))

    async def close(self) -> None:
        """End the calls in progress; each is counted and recorded."""
        for call in list(self._calls):
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=5)
        await self.upstream.close()
        self.trace.close()
        self.write()

    def write(self) -> None:
        """Put the counts on disk, if they have changed."""
        trace = {"cut": self.trace.cut, "left_out": self.trace.left_out}
        self.ledger.write(trace=trace, unavailable=self.outages.to_dict())


def _line(begun: float, path: str, body: Any, **facts: Any) -> dict[str, Any]:
    """A line of the trace."""
    blank = dict.fromkeys(("answer", "status", "seconds", "usage", *(f"{name}_tokens" for name in COUNTED), "cost"))
    api = api_of(path)
    model = api.model(body) if isinstance(body, dict) else None
    stream = isinstance(body, dict) and api.is_stream(body)
    return {
        "time": round(begun, 3),
        "path": path,
        "model": model[:200] if isinstance(model, str) else None,
        "stream": stream,
        "request": body,
        **blank,
        "retries": 0,
        "error": None,
        **facts,
    }


def _exchange(path: str, body: dict[str, Any], send: Send, share: CallMemory) -> Exchange:
    async def start(status: int, kind: str, headers: dict[str, str]) -> None:
        listed = [(name.encode(), value.encode()) for name, value in {"content-type": kind, **headers}.items()]
        await send({"type": "http.response.start", "status": status, "headers": listed})

    async def pass_on(data: bytes, more: bool) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})

    stream = api_of(path).is_stream(body)
    return Exchange(path, stream, stream and not policy.wants_usage(body), start, pass_on, memory=share)


def _parsed(raw: bytes, share: CallMemory) -> dict[str, Any]:
    try:
        body = wire.parsed(raw, MOST_VALUES, strict=True, announce=share.take_values)
    except JsonBoundsError as error:
        raise RequestRefusedError(400, "invalid_request_error", f"The request {error}.") from None
    except ValueError as error:
        raise RequestRefusedError(
            400, "invalid_request_error", f"The request is not JSON: {str(error)[:200]}."
        ) from None
    if not isinstance(body, dict):
        raise RequestRefusedError(400, "invalid_request_error", "The request is not a JSON object.")
    return body


def _headers(scope: MutableMapping[str, Any]) -> dict[str, str]:
    """By name; several of one name are one list."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    return headers


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(send: Send, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
