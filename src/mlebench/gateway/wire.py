"""What the APIs have in common: JSON from outside, events of streams, errors within answers, and usage."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlebench.core.untrusted import MOST_VALUES, JsonBoundsError, parse_json
from mlebench.gateway.prices import TokenUsage

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES, COUNT_TOKENS = "/v1/messages", "/v1/messages/count_tokens"
# Google's paths name the model.
GENERATE, STREAM_GENERATE, COUNT_CONTENT = (
    f"/v1beta/models/{{model}}:{method}" for method in ("generateContent", "streamGenerateContent", "countTokens")
)
MODELS, GOOGLE_MODELS = "/v1/models", "/v1beta/models"
LONGEST_EVENT = 8 << 20
DEEPEST = 200  # levels of nested lists and objects
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")


class MalformedResponseError(Exception):
    """The endpoint sent something in an unknown format."""


def parsed(
    text: bytes, most: int = MOST_VALUES, *, strict: bool = False, announce: Callable[[int], None] | None = None
) -> Any:
    """The parsed JSON, as `parse_json` does it; JsonBoundsError also if it is nested more deeply than `DEEPEST`.

    Infinity and NaN become null, and the last of several equal names counts; both are errors if `strict`.
    """

    def odd(name: str) -> None:
        if strict:
            raise ValueError(f"{name} is not a number")

    def number(digits: str) -> float | None:
        value = float(digits)
        return value if math.isfinite(value) else odd(digits)

    names = _unique if strict else None
    data = parse_json(text, most, announce=announce, parse_constant=odd, parse_float=number, object_pairs_hook=names)
    level = [data]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return data
    raise JsonBoundsError("is nested too deeply")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"it has {name[:100]!r} twice")
    return names


def _inside(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict | list)]


def error_in(data: dict[str, Any]) -> Any:
    """The error that an answer or an event holds instead of what was asked for, in any API's form; None if none."""
    if error := data.get("error"):
        return error
    if data.get("type") == "error" or "error" in (data.get("object"), data.get("status")):
        return data
    if isinstance(response := data.get("response"), dict):  # an event of Responses
        return error_in(response)
    if data.get("status") == "failed":
        return data
    for choice in objects(data.get("choices")):
        if choice.get("error") or choice.get("finish_reason") == "error":
            return choice.get("error") or choice
    return None


def model_list(models: tuple[str, ...]) -> dict[str, Any]:
    """For the clients of all providers."""
    entries = [
        {
            "id": model,
            "object": "model",
            "type": "model",
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "endpoint",
            "display_name": model,
            "name": f"models/{model}",
            "displayName": model,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
        for model in models
    ]
    ends = {"has_more": False, "first_id": models[0], "last_id": models[-1]}
    return {"object": "list", "data": entries, "models": entries, **ends}


def tokens_of(usage: Any) -> TokenUsage:
    """What a usage object says, in any provider's words."""
    if not isinstance(usage, dict):
        return TokenUsage()
    if "promptTokenCount" in usage:
        return _google_tokens(usage)
    if "prompt_tokens" in usage:
        names = ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details")
    else:
        names = ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
    into, out, into_details, out_details = (usage.get(name) for name in names)
    cached = _count(into_details, "cached_tokens")
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:  # Anthropic's are separate
        read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens") or 0
        long = _count(usage.get("cache_creation"), "ephemeral_1h_input_tokens") or 0
        plain = _number(into)
        total = None if plain is None else plain + (read or 0) + written
        return TokenUsage(
            total, read, _number(out), _count(out_details, "reasoning_tokens"), written, min(long, written)
        )
    written = _count(into_details, "cache_write_tokens") or 0
    return TokenUsage(_number(into), cached, _number(out), _count(out_details, "reasoning_tokens"), written)


def _google_tokens(usage: dict[str, Any]) -> TokenUsage:
    """Thoughts are counted beside the answer, and counts of zero are left out."""
    names = ("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    prompt, tools, answer, thoughts = (_count(usage, name) for name in names)
    into = None if prompt is None else prompt + (tools or 0)
    out = None if answer is thoughts is None else (answer or 0) + (thoughts or 0)
    if out is None and into is not None and (total := _count(usage, "totalTokenCount")) is not None:
        out = max(0, total - into)
    return TokenUsage(into, _count(usage, "cachedContentTokenCount"), out, thoughts)


def _count(holder: Any, name: str) -> int | None:
    return _number(holder.get(name)) if isinstance(holder, dict) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else None


@dataclass
class StreamEvent:
    raw: bytes
    data: Any = None  # the JSON that it carries, if any
    is_done: bool = False

    @property
    def is_extra_usage(self) -> bool:
        """Whether this is the chunk that `stream_options.include_usage` adds."""
        return bool(self.data) and self.data.get("choices") == [] and bool(self.data.get("usage"))


class StreamParser:
    """Server-sent events, as they come out of a stream of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        looked = max(0, len(self._buffer) - 3)
        self._buffer += data
        while match := _END_OF_EVENT.search(self._buffer, looked):
            raw = bytes(self._buffer[: match.end()])
            del self._buffer[: match.end()]
            looked = 0
            yield _event(raw)
        if len(self._buffer) > LONGEST_EVENT:
            raise MalformedResponseError("an event of its stream does not end")

    def flush(self) -> Iterator[StreamEvent]:
        """What is left at the end, if the final empty line is missing."""
        if self._buffer.strip():
            yield _event(bytes(self._buffer) + b"\n\n")


def _event(raw: bytes) -> StreamEvent:
    lines = [line.removeprefix(b"data:").strip() for line in raw.splitlines() if line.startswith(b"data:")]
    text = b"\n".join(lines)
    if text == b"[DONE]":
        return StreamEvent(raw, is_done=True)
    if not lines:
        if not raw.strip() or raw.lstrip().startswith((b":", b"event:", b"id:", b"retry:")):
            return StreamEvent(raw)
        raise MalformedResponseError("its stream holds no events")
    try:
        data = parsed(text)
    except JsonBoundsError as error:
        raise MalformedResponseError(f"an event of its stream {error}") from None
    except ValueError:
        raise MalformedResponseError("an event of its stream is not JSON") from None
    if not isinstance(data, dict):
        raise MalformedResponseError("an event of its stream is not an object")
    return StreamEvent(raw, data)


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
