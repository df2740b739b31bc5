"""Calls a model for a tool: a judge, or the model that is asked what it knows.

Trace and usage go to a separate folder, never into a run that is judged.
"""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.gateway import policy
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.accounting import CallLedger, FinishedCall
from mlebench.gateway.estimate import estimate_call
from mlebench.gateway.policy import AcceptedRequest, RequestRefusedError
from mlebench.gateway.trace import Trace
from mlebench.gateway.upstream import Exchange, Timeouts, Upstream
from mlebench.gateway.wire import CHAT

AT_A_TIME = 8  # calls
TIMING = Timeouts(idle=300, call=900)
_HOPELESS = (400, 401, 403, 404, 405)  # one such failure means that all calls fail
_NO_CONNECTION = 502
_DAY = 86_400.0


@dataclass
class ModelEndpoint:
    access: ModelAccess
    log: Path  # holds a folder for each use
    timing: Timeouts = TIMING
    name: str = "the judge"  # in messages
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self._key = self.access.key()
        self.folder = self.log / f"{paths.timestamp()}_{uuid4().hex[:8]}"
        self.folder.mkdir(parents=True)
        self._ledger = CallLedger(self.access, paths.usage_file(self.folder))

    @property
    def model(self) -> str:
        return self.access.models[0]

    def ask_all(self, system: str, prompts: list[str]) -> list[str | None]:
        """The answers, in order; None where the budget was used up or the endpoint failed."""
        conversations = [
            [{"role": "system", "content": system}, {"role": "user", "content": prompt}] for prompt in prompts
        ]
        return [
            content_of(answer) for answer in self.call_all(CHAT, [{"messages": messages} for messages in conversations])
        ]

    def call_all(self, path: str, bodies: list[dict[str, Any]]) -> list[Any]:
        """Whole answers to requests of one API; None for one without an answer."""
        return asyncio.run(self._call_all(path, bodies))

    async def _call_all(self, path: str, bodies: list[dict[str, Any]]) -> list[Any]:
        upstream = Upstream(self.access, self._key, self.timing, time.monotonic() + _DAY)
        trace = Trace(paths.model_calls(self.folder), hide=self._key)
        free = asyncio.Semaphore(AT_A_TIME)

        async def call(body: dict[str, Any]) -> Any:
            async with free:
                return await self._call(upstream, trace, path, {"model": self.model, **body})

        try:
            return await asyncio.gather(*map(call, bodies))
        finally:
            await upstream.close()
            trace.close()
            self._ledger.write()

    async def _call(self, upstream: Upstream, trace: Trace, path: str, body: dict[str, Any]) -> Any:
        try:
            reservation = await self._ledger.reserve(estimate_call(path, AcceptedRequest(self.model, body)))
        except RequestRefusedError as error:
            self._ledger.refuse(error.kind)
            return None
        begun, clock = time.time(), time.monotonic()
        exchange = Exchange(path, stream=False, withhold_usage=False, start=_ignore, write=_ignore)
        await upstream.call(exchange, policy.as_sent(path, body, reservation.output), {})
        seconds = time.monotonic() - clock
        ended = FinishedCall(
            self.model, exchange.tokens, seconds, exchange.retries, exchange.error, is_answered=exchange.may_cost
        )
        cost = self._ledger.settle(reservation, ended)
        line = {"time": round(begun, 3), "seconds": round(seconds, 3), "cost": cost, "error": exchange.error}
        trace.write({**line, "request": body, "answer": exchange.answer})
        is_dead = exchange.status == _NO_CONNECTION and not exchange.is_answered
        if exchange.error and (exchange.status in _HOPELESS or is_dead):
            raise PrerequisiteError(f"{self.name} at {self.access.endpoint}: {exchange.error}")
        return None if exchange.error else exchange.answer


async def _ignore(*_: Any) -> None:
    """Ignore the pieces of the answer."""


def content_of(answer: Any) -> str | None:
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return text
        case {"choices": [{"message": {"content": [*parts]}}, *_]}:
            return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
    return None
