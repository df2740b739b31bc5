"""The two providers' formats: paths, errors, usage, limits on output, and reassembled streams."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mlebench.core.untrusted import MOST_VALUES, JsonBoundsError, parse_json
from mlebench.gateway.prices import TokenUsage

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES, COUNT_TOKENS = "/v1/messages", "/v1/messages/count_tokens"
MODELS = "/v1/models"
PATHS = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, COUNT_TOKENS)
# Where a request says how long the answer may be; the first is what we write.
OUTPUT_LIMITS = {
    CHAT: ("max_completion_tokens", "max_tokens", "n_predict"),
    COMPLETIONS: ("max_tokens", "max_completion_tokens", "n_predict"),
    RESPONSES: ("max_output_tokens",),
    MESSAGES: ("max_tokens",),
}
LONGEST_EVENT = 8 << 20
DEEPEST = 200  # levels of nested lists and objects
MEASURED_EVERY = 512 << 10  # bytes of a stream
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_WHOLE = {"role", "id", "type", "object", "name", "model", "finish_reason", "created", "signature"}
_LAST_RESPONSES = {"response.completed", "response.failed", "response.incomplete"}


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


def is_anthropic(path: str) -> bool:
    return path.startswith(MESSAGES)


def error_body(path: str, kind: str, message: str) -> dict[str, Any]:
    """An error as a provider's client expects it."""
    if is_anthropic(path):
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


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
    for choice in _objects(data.get("choices")):
        if choice.get("error") or choice.get("finish_reason") == "error":
            return choice.get("error") or choice
    return None


def error_event(path: str, kind: str, message: str) -> bytes:
    """Return an error as an event of a stream that has begun."""
    name = b"event: error\n" if is_anthropic(path) or path == RESPONSES else b""
    body = error_body(path, kind, message)
    if path == RESPONSES:
        body = {"type": "error", "code": kind, "message": message, "param": None}
    return name + b"data: " + json.dumps(body).encode() + b"\n\n"


def model_list(models: tuple[str, ...]) -> dict[str, Any]:
    """For the clients of both providers."""
    entries = [
        {
            "id": model,
            "object": "model",
            "type": "model",
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "endpoint",
            "display_name": model,
        }
        for model in models
    ]
    return {"object": "list", "data": entries, "has_more": False, "first_id": models[0], "last_id": models[-1]}


def tokens_of(usage: Any) -> TokenUsage:
    """What a usage object says, in either provider's words."""
    if not isinstance(usage, dict):
        return TokenUsage()
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


def _count(holder: Any, name: str) -> int | None:
    return _number(holder.get(name)) if isinstance(holder, dict) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else None


@dataclass
class StreamEvent:
    raw: bytes
    data: Any = None  # the JSON that it carries, if any
    is_done: bool = False


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


class _GrowingText(list[str]):
    """A text that grows."""


@dataclass
class Assembly:
    """The answer that the events of a stream add up to."""

    path: str
    usage: Any = None
    is_complete: bool = False
    is_usage_final: bool = False  # Anthropic reports input at the start, output at the end
    error: str | None = None
    failure: Any = None  # the error itself
    _answer: dict[str, Any] = field(default_factory=dict)
    _choices: dict[int, dict[str, Any]] = field(default_factory=dict)
    _blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _items: dict[int, dict[str, Any]] = field(default_factory=dict)
    _measure_after: int = MEASURED_EVERY

    def take(self, event: StreamEvent) -> None:
        if event.is_done:
            self.is_complete = True
        if event.data is None:
            return
        if error := error_in(event.data):
            self.failure = error
            self.error = str((error.get("message") or error.get("code")) if isinstance(error, dict) else error)[:1000]
        if is_anthropic(self.path):
            self._take_message(event.data)
        elif self.path == RESPONSES:
            self._take_response(event.data)
        else:
            self._take_chunk(event.data)

    def growth(self, size: int) -> tuple[int, int] | None:
        """Now and then, as a stream grows to `size` bytes: the values that are held of it, and their characters."""
        if size < self._measure_after:
            return None
        self._measure_after = size + MEASURED_EVERY
        return _extent([self._answer, self._choices, self._blocks, self._items])

    def is_extra_usage(self, event: StreamEvent) -> bool:
        """Whether this is the chunk that `stream_options.include_usage` adds."""
        return bool(event.data) and event.data.get("choices") == [] and bool(event.data.get("usage"))

    def answer(self) -> dict[str, Any] | None:
        answer = dict(self._answer)
        if self._choices:
            answer["choices"] = [self._choices[index] for index in sorted(self._choices)]
        if self._blocks:
            answer["content"] = [_block(self._blocks[index]) for index in sorted(self._blocks)]
        if self._items and not answer.get("output"):  # it was cut off: only the last event has all of it
            answer["output"] = [self._items[index] for index in sorted(self._items)]
        return _joined(answer) or None

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        self.usage = chunk.get("usage") or self.usage
        self.is_usage_final = True
        for name, value in chunk.items():
            if name not in ("choices", "usage") and value is not None:
                self._answer.setdefault(name, value)
        for choice in _objects(chunk.get("choices")):
            if not isinstance(index := choice.get("index", 0), int):
                raise MalformedResponseError("a choice of its stream has no number")
            held = self._choices.setdefault(index, {"index": index})
            if isinstance(delta := choice.get("delta"), dict):
                _merge(held.setdefault("message", {}), delta)
            _merge(held, {name: value for name, value in choice.items() if name not in ("delta", "index")})
        self.is_complete |= bool(self._choices) and all(c.get("finish_reason") for c in self._choices.values())

    def _take_response(self, event: dict[str, Any]) -> None:
        response = event.get("response")
        if isinstance(response, dict):
            self._answer = response
            self.usage = response.get("usage") or self.usage
            self.is_usage_final = True
        match event:
            case {"type": "response.output_item.done", "output_index": int(index), "item": dict(item)}:
                self._items[index] = item
        self.is_complete |= event.get("type") in _LAST_RESPONSES

    def _take_message(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._answer = {name: value for name, value in message.items() if name not in ("usage", "content")}
                self._take_usage(message.get("usage"))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._blocks[index] = {}
                _merge(self._blocks[index], block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                fields = {name: value for name, value in delta.items() if name != "type"}
                _merge(self._blocks.setdefault(index, {}), fields)
            case {"type": "message_delta"}:
                self._take_usage(event.get("usage"))
                self.is_usage_final = True
                if isinstance(delta := event.get("delta"), dict):
                    self._answer |= delta
            case {"type": "message_stop"}:
                self.is_complete = True

    def _take_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.usage = {**(self.usage or {}), **{name: value for name, value in usage.items() if value is not None}}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A block of Anthropic's content. A tool's input arrives in pieces of JSON, after an empty object."""
    block = _joined(block)
    pieces = block.pop("partial_json", None)
    if not isinstance(pieces, str) or not pieces:
        return block
    try:
        return block | {"input": parsed(pieces.encode("utf-8", "surrogatepass"))}
    except ValueError:  # it was cut off, or the model wrote no JSON
        return block | {"input": pieces}


def _extent(value: Any) -> tuple[int, int]:
    """How many values there are, and how many characters they have."""
    values, characters, waiting = 0, 0, [value]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
    return values, characters


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _merge(held: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add what a delta says: texts grow, lists are merged by index, the rest is set."""
    for name, value in delta.items():
        match value:
            case None:
                held.setdefault(name, None)
            case str() if name not in _WHOLE:
                if not isinstance(pieces := held.get(name), _GrowingText):
                    held[name] = pieces = _GrowingText()
                pieces.append(value)
            case dict() if isinstance(held.get(name), dict):
                _merge(held[name], value)
            case dict():
                held[name] = {}
                _merge(held[name], value)
            case list():
                if not isinstance(held.get(name), list):
                    held[name] = []
                _merge_list(held[name], value)
            case _:
                held[name] = value


def _merge_list(held: list[Any], items: list[Any]) -> None:
    for item in items:
        if isinstance(item, dict) and isinstance(index := item.get("index"), int):
            member = next((entry for entry in held if isinstance(entry, dict) and entry.get("index") == index), None)
            if member is None:
                held.append(member := {})
            _merge(member, item)
        else:
            held.append(item)


def _joined(value: Any) -> Any:
    match value:
        case _GrowingText():
            return "".join(value)
        case dict():
            return {name: _joined(item) for name, item in value.items()}
        case list():
            return [_joined(item) for item in value]
    return value
