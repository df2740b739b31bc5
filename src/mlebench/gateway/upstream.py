"""Calls the endpoint. A call is retried, within bounds, as long as nothing of its answer was passed on."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlebench.core.retry_after import retry_after_seconds
from mlebench.core.secrets import hiding
from mlebench.core.untrusted import JsonBoundsError
from mlebench.gateway.access import ModelAccess, upstream_url
from mlebench.gateway.apis import Api, api_of
from mlebench.gateway.assembly import Assembly
from mlebench.gateway.capacity import CallMemory, CallQueue, MemoryPool, OverloadedError
from mlebench.gateway.client import Client, EndpointResponse, IdleTimeoutError
from mlebench.gateway.outage import (
    BAD_ANSWER,
    CONNECTION,
    PATIENCE,
    TIMEOUT,
    Outage,
    asked_pause,
    outage_of,
    quoted,
    status_of,
)
from mlebench.gateway.prices import TokenUsage
from mlebench.gateway.wire import (
    MalformedResponseError,
    StreamParser,
    error_in,
    parsed,
    tokens_of,
)

LARGEST_ANSWER = 64 << 20
LARGEST_ERROR = 1 << 20
CAUSES = {"timeout": TIMEOUT, "connection_error": CONNECTION, "bad_answer": BAD_ANSWER}
NO_RETRY = {"x-should-retry": "false"}  # both providers' clients heed this; we have retried enough


@dataclass(frozen=True)
class Timeouts:
    """Limits, in seconds."""

    connect: float = 20
    idle: float = 600  # without receiving a byte
    call: float = 3600  # one call with all its retries
    retries: int = 5
    first_pause: float = 0.5
    longest_pause: float = 60


@dataclass
class Exchange:
    """A call in progress, and what is known about it; it can be cut off at any point."""

    path: str
    stream: bool
    withhold_usage: bool
    start: Callable[[int, str, dict[str, str]], Awaitable[None]]
    write: Callable[[bytes, bool], Awaitable[None]]  # takes data, and whether more will come
    status: int | None = None
    retries: int = 0
    answer: Any = None
    usage: Any = None
    error: str | None = None
    outage: Outage | None = None  # why the last try failed, unless that is the agent's doing
    is_sent: bool = False  # the endpoint may have the whole request, and has not failed it
    is_answered: bool = False
    has_started: bool = False
    assembly: Assembly | None = None
    is_large: bool = False  # the request
    memory: CallMemory = field(default_factory=lambda: CallMemory(MemoryPool()))

    @property
    def api(self) -> Api:
        return api_of(self.path)

    @property
    def may_cost(self) -> bool:
        """Whether the provider may charge for it: it has begun an answer, or is still working on one."""
        return self.is_sent or self.is_answered

    @property
    def tokens(self) -> TokenUsage:
        if self.api.is_free:
            return TokenUsage(0, 0, 0, 0)
        if self.assembly is None:
            return tokens_of(self.usage)
        tokens = tokens_of(self.assembly.usage)
        return tokens if self.assembly.is_usage_final else replace(tokens, output=None)

    def note_sent(self) -> None:
        self.is_sent = True

    async def pass_on(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.status, self.has_started = status, True
        await self.start(status, kind, headers)
        await self.send(body)

    async def send(self, data: bytes) -> None:
        await self.write(data, True)

    async def end(self) -> None:
        await self.write(b"", False)


class CallFailedError(Exception):
    """The endpoint gave no answer that can be passed on."""

    def __init__(self, status: int, kind: str, message: str):
        super().__init__(message)
        self.status, self.kind = status, kind


def is_redactable(key: str | None) -> bool:
    """Whether a key is unlikely to occur elsewhere by chance; `EMPTY` and the like mean no key."""
    return key is not None and len(key) >= 12


class Upstream:
    def __init__(self, access: ModelAccess, key: str | None, timing: Timeouts, deadline: float):
        self._access, self._key, self._timing, self._deadline = access, key, timing, deadline
        self._client = Client(access.endpoint, timing.connect, timing.idle)
        self._hide = hiding(key if is_redactable(key) else None)
        self.turns = CallQueue()

    async def close(self) -> None:
        await self._client.close()

    def scrubbed(self, data: bytes) -> bytes:
        """The data without the key, in case the endpoint repeats it."""
        return self._hide(data.decode("latin-1")).encode("latin-1")

    async def call(self, exchange: Exchange, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Make the call and pass the answer on; errors go to the agent, and are kept in `exchange`."""
        content = json.dumps(body).encode()
        seconds = max(0.0, min(self._timing.call, self._deadline - time.monotonic()))
        try:
            async with asyncio.timeout(seconds):
                await self._with_retries(exchange, content, self._headers(exchange.api, headers))
        except TimeoutError:
            message = f"no complete answer arrived within {seconds:.0f} s"
            await self._fail(exchange, CallFailedError(504, "timeout", message), had_time=seconds >= PATIENCE)
        except IdleTimeoutError:
            await self._fail(exchange, CallFailedError(504, "timeout", "the endpoint fell silent"))
        except OSError as error:
            await self._fail(exchange, CallFailedError(502, "connection_error", _connection_fault(error)))
        except OverloadedError:
            message = "its answer does not fit into the memory for calls in progress"
            await self._fail(exchange, CallFailedError(502, "bad_answer", message))
        except MalformedResponseError as error:
            await self._fail(exchange, CallFailedError(502, "bad_answer", str(error)))
        except CallFailedError as error:
            await self._fail(exchange, error)
        finally:
            if exchange.outage:  # an endpoint may repeat the key
                says = self.scrubbed(exchange.outage.says.encode()).decode()
                exchange.outage = replace(exchange.outage, says=says)

    async def _fail(self, exchange: Exchange, error: CallFailedError, *, had_time: bool = True) -> None:
        message = self._hide(f"The model's endpoint gave no usable answer: {error}.")
        exchange.error = message
        if error.status >= 500 and had_time and not exchange.outage:
            exchange.outage = Outage(CAUSES[error.kind], quoted(str(error)))
        if exchange.has_started:
            await exchange.send(exchange.api.error_event(error.status, error.kind, message))
        else:
            body = json.dumps(exchange.api.error_body(error.status, error.kind, message)).encode()
            await exchange.pass_on(error.status, body, **NO_RETRY)

    def _headers(self, api: Api, headers: Mapping[str, str]) -> dict[str, str]:
        own = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "mlebench"}
        return {**headers, **own, **(api.key_headers(self._key) if self._key else {})}

    async def _with_retries(self, exchange: Exchange, content: bytes, headers: dict[str, str]) -> None:
        url = upstream_url(self._access.endpoint, exchange.path)
        while True:
            last = exchange.retries >= self._timing.retries
            wanted: float | None = None
            try:
                async with self._client.post(url, content, headers, exchange.note_sent) as answer:
                    exchange.status, exchange.is_sent = answer.status, answer.status == 200
                    wanted = retry_after_seconds(answer.headers.get("retry-after", ""))
                    exchange.outage = None
                    error = await (self._take(exchange, answer) if answer.status == 200 else self._error_of(answer))
                    if error is None:
                        self.turns.answered()
                        return
                    if error.status == 429:
                        self.turns.refused()
                    wanted = wanted or asked_pause(error.data)
                    exchange.outage = error.outage
                    if last or not _may_be_retried(error) or (wanted or 0) > self._timing.longest_pause:
                        await self._pass_error(exchange, error, wanted)
                        return
            except OSError as fault:
                exchange.outage = Outage(CONNECTION, quoted(_connection_fault(fault)))
                exchange.is_sent = False  # failed connections cost nothing, unless an answer has begun
                if exchange.has_started or last:
                    raise
            exchange.is_sent = False
            exchange.retries += 1
            pause = min(self._timing.longest_pause, self._timing.first_pause * 2 ** (exchange.retries - 1))
            await asyncio.sleep(max(wanted or 0.0, pause * random.uniform(0.5, 1.0)))

    async def _error_of(self, answer: EndpointResponse) -> "_EndpointError":
        body = self.scrubbed(await _read(answer, LARGEST_ERROR))
        try:
            data = parsed(body)
        except ValueError:
            data = None
        if isinstance(data, list) and len(data) == 1:  # Google wraps errors of streams
            data = data[0]
        return _EndpointError(answer.status, body, data)

    async def _pass_error(self, exchange: Exchange, error: "_EndpointError", wanted: float | None) -> None:
        if not 400 <= error.status < 600 or not isinstance(error.data, dict):
            status = error.status if 400 <= error.status < 600 else 502
            beginning = error.body[:200].decode("utf-8", "replace")
            raise CallFailedError(status, "bad_answer", f"it answered {error.status} with {beginning!r}")
        exchange.answer, exchange.is_sent = error.data, False
        exchange.error = error.message
        headers = NO_RETRY | ({"retry-after": f"{wanted:.0f}"} if wanted else {})
        await exchange.pass_on(error.status, error.body, **headers)

    async def _take(self, exchange: Exchange, answer: EndpointResponse) -> "_EndpointError | None":
        """Pass the answer on, unless it is an error in disguise, which is returned."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if exchange.stream and kind == "text/event-stream":
            return await self._take_stream(exchange, answer)
        exchange.is_answered = True
        body = self.scrubbed(await _read(answer, LARGEST_ANSWER, exchange.memory))
        try:
            data = parsed(body, announce=exchange.memory.take_values)
        except JsonBoundsError as error:
            raise MalformedResponseError(f"its answer {error}") from None
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise MalformedResponseError(f"it answered 200 with {body[:200].decode('utf-8', 'replace')!r}")
        if failure := error_in(data):
            exchange.is_answered = False
            return _EndpointError(status_of(failure), body, data, is_disguised=True)
        exchange.answer, exchange.usage = data, exchange.api.usage(data)
        await exchange.pass_on(200, body)
        return None

    async def _take_stream(self, exchange: Exchange, answer: EndpointResponse) -> None:
        """Pass events on as they come, except the usage event if the agent did not ask for it."""
        exchange.assembly = assembly = exchange.api.assembly()
        events, size = StreamParser(), 0
        async for data in answer.pieces:
            size += len(data)
            if size > LARGEST_ANSWER:
                raise MalformedResponseError(f"it answered with more than {LARGEST_ANSWER} bytes")
            exchange.memory.take_stream(len(data))
            await self._pass_events(exchange, list(events.feed(data)))
            if growth := assembly.growth(size):
                exchange.memory.settle_stream(*growth)
        await self._pass_events(exchange, list(events.flush()))
        if assembly.error:
            exchange.error, exchange.is_sent = self._hide(assembly.error), False
            exchange.outage = outage_of(status_of(assembly.failure), assembly.failure)
        elif not assembly.is_complete:
            raise CallFailedError(502, "connection_error", "its stream ended early")

    async def _pass_events(self, exchange: Exchange, events: list[Any]) -> None:
        assembly = exchange.assembly
        if assembly is None or not events:
            return
        out = bytearray()
        for event in events:
            assembly.take(event)
            exchange.is_answered |= event.data is not None and assembly.error is None
            if not (exchange.withhold_usage and event.is_extra_usage):
                out += event.raw
        if not out:
            return
        if not exchange.has_started:
            exchange.has_started, exchange.status = True, 200
            await exchange.start(200, "text/event-stream", {"cache-control": "no-cache"})
        await exchange.send(self.scrubbed(bytes(out)))


@dataclass(frozen=True)
class _EndpointError:
    status: int
    body: bytes
    data: Any
    is_disguised: bool = False  # the endpoint sent it with status 200

    @property
    def message(self) -> str:
        if not self.is_disguised:
            return f"the endpoint answered {self.status}"
        return f"the endpoint answered 200 with an error: {quoted(error_in(self.data))}"

    @property
    def outage(self) -> Outage | None:
        if isinstance(self.data, dict):
            return outage_of(self.status, error_in(self.data) or self.data)
        return outage_of(self.status, self.body[:200].decode("utf-8", "replace"))


def _may_be_retried(error: _EndpointError) -> bool:
    """True for too many calls and for faults of the endpoint. A quota that is used up is not retryable."""
    if error.status == 429:
        return not any(word in error.body for word in (b"insufficient_quota", b"PerDay"))
    return error.status == 408 or error.status >= 500


def _connection_fault(error: OSError) -> str:
    return f"the connection failed: {error or type(error).__name__}"


async def _read(answer: EndpointResponse, most: int, memory: CallMemory | None = None) -> bytes:
    body = bytearray()
    async for data in answer.pieces:
        if memory:
            memory.take_bytes(len(data))
        body += data
        if len(body) > most:
            raise MalformedResponseError(f"it answered with more than {most} bytes")
    return bytes(body)
