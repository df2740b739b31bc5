"""One small call to each model of a group before its runs depend on it: about 10 tokens in and at most 16 out."""

import asyncio
import time
from typing import Any

from mlebench.gateway.access import ANTHROPIC, GOOGLE, ModelAccess
from mlebench.gateway.apis import api_of
from mlebench.gateway.outage import Outage
from mlebench.gateway.upstream import Exchange, Timeouts, Upstream
from mlebench.gateway.wire import CHAT, GENERATE, MESSAGES, RESPONSES

TIMING = Timeouts(connect=10, idle=30, call=30, retries=1)
OUTPUT = 16  # tokens
PROMPT = "Answer yes."
MESSAGE = {"messages": [{"role": "user", "content": PROMPT}]}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: MESSAGE,
    RESPONSES: {"input": PROMPT},
    MESSAGES: MESSAGE,
    GENERATE: {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]},
}
FIRST = {ANTHROPIC: MESSAGES, GOOGLE: GENERATE}
NOT_HERE = (404, 405)  # perhaps the model has another API,
NOT_THERE = (*NOT_HERE, 401, 403)  # which the endpoint may not have


def probe(access: ModelAccess) -> dict[str, Outage]:
    """The models that cannot be called, and why. Nothing is counted: this is no call of a run."""
    return asyncio.run(_probe(access))


async def _probe(access: ModelAccess) -> dict[str, Outage]:
    outages = {}
    upstream = Upstream(access, access.key(), TIMING, time.monotonic() + TIMING.call * len(access.models) * len(BODIES))
    try:
        for model in access.models:
            if outage := await _probed(upstream, access, model):
                outages[model] = outage
    finally:
        await upstream.close()
    return outages


async def _probed(upstream: Upstream, access: ModelAccess, model: str) -> Outage | None:
    first = FIRST.get(access.provider, CHAT)
    fallbacks = [path for path in BODIES if path != first]
    exchange = await _call(upstream, first, model)
    for path in fallbacks if exchange.status in NOT_HERE else ():
        fallback = await _call(upstream, path, model)
        if fallback.status not in NOT_THERE:
            return fallback.outage
    return exchange.outage


async def _call(upstream: Upstream, path: str, model: str) -> Exchange:
    body = BODIES[path] if path == GENERATE else {"model": model, **BODIES[path]}
    path = path.format(model=model)
    exchange = Exchange(path, stream=False, withhold_usage=False, start=_ignore, write=_ignore)
    await upstream.call(
        exchange, api_of(path).limited(body, OUTPUT), {"anthropic-version": "2023-06-01"} if path == MESSAGES else {}
    )
    return exchange


async def _ignore(*_: Any) -> None:
    """Ignore the answer."""
