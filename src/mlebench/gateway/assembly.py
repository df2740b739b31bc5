"""The answers that streams add up to, a class for each API."""

from dataclasses import dataclass, field
from typing import Any

from mlebench.gateway.wire import MalformedResponseError, StreamEvent, error_in, objects, parsed

MEASURED_EVERY = 512 << 10  # bytes of a stream
_WHOLE = {"role", "id", "type", "object", "name", "model", "finish_reason", "created", "signature", "thoughtSignature"}
_LAST_RESPONSES = {"response.completed", "response.failed", "response.incomplete"}


class _GrowingText(list[str]):
    """A text that grows."""


@dataclass
class Assembly:
    """The answer that the events of a stream add up to."""

    usage: Any = None
    is_complete: bool = False
    is_usage_final: bool = False  # some report input at the start, output at the end
    error: str | None = None
    failure: Any = None  # the error itself
    _answer: dict[str, Any] = field(default_factory=dict)
    _parts: dict[int, dict[str, Any]] = field(default_factory=dict)  # by their numbers
    _measure_after: int = MEASURED_EVERY

    def take(self, event: StreamEvent) -> None:
        if event.is_done:
            self.is_complete = True
        if event.data is None:
            return
        if error := error_in(event.data):
            self.failure = error
            self.error = str((error.get("message") or error.get("code")) if isinstance(error, dict) else error)[:1000]
        self._take(event.data)

    def growth(self, size: int) -> tuple[int, int] | None:
        """Now and then, as a stream grows to `size` bytes: the values that are held of it, and their characters."""
        if size < self._measure_after:
            return None
        self._measure_after = size + MEASURED_EVERY
        return _extent([self._answer, self._parts])

    def answer(self) -> dict[str, Any] | None:
        parts = [self._parts[index] for index in sorted(self._parts)]
        return _joined(self._with_parts(parts) if parts else self._answer) or None

    def _take(self, event: dict[str, Any]) -> None:
        raise NotImplementedError

    def _with_parts(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        raise NotImplementedError

    def _part_of(self, item: dict[str, Any]) -> dict[str, Any]:
        """What is held of the part that an item continues."""
        if not isinstance(index := item.get("index", 0), int):
            raise MalformedResponseError("a choice of its stream has no number")
        return self._parts.setdefault(index, {"index": index})

    def _take_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.usage = {**(self.usage or {}), **{name: value for name, value in usage.items() if value is not None}}


class ChatAssembly(Assembly):
    """Of chat completions and completions."""

    def _take(self, event: dict[str, Any]) -> None:
        self.usage = event.get("usage") or self.usage
        self.is_usage_final = True
        for name, value in event.items():
            if name not in ("choices", "usage") and value is not None:
                self._answer.setdefault(name, value)
        for choice in objects(event.get("choices")):
            held = self._part_of(choice)
            if isinstance(delta := choice.get("delta"), dict):
                _merge(held.setdefault("message", {}), delta)
            _merge(held, {name: value for name, value in choice.items() if name not in ("delta", "index")})
        self.is_complete |= bool(self._parts) and all(c.get("finish_reason") for c in self._parts.values())

    def _with_parts(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return self._answer | {"choices": parts}


class ResponseAssembly(Assembly):
    def _take(self, event: dict[str, Any]) -> None:
        response = event.get("response")
        if isinstance(response, dict):
            self._answer = response
            self.usage = response.get("usage") or self.usage
            self.is_usage_final = True
        match event:
            case {"type": "response.output_item.done", "output_index": int(index), "item": dict(item)}:
                self._parts[index] = item
        self.is_complete |= event.get("type") in _LAST_RESPONSES

    def _with_parts(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        # If it was cut off: only the last event has all of it.
        return self._answer if self._answer.get("output") else self._answer | {"output": parts}


class MessageAssembly(Assembly):
    def _take(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._answer = {name: value for name, value in message.items() if name not in ("usage", "content")}
                self._take_usage(message.get("usage"))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._parts[index] = {}
                _merge(self._parts[index], block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                fields = {name: value for name, value in delta.items() if name != "type"}
                _merge(self._parts.setdefault(index, {}), fields)
            case {"type": "message_delta"}:
                self._take_usage(event.get("usage"))
                self.is_usage_final = True
                if isinstance(delta := event.get("delta"), dict):
                    self._answer |= delta
            case {"type": "message_stop"}:
                self.is_complete = True

    def _with_parts(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return self._answer | {"content": [_block(part) for part in parts]}


class GeminiAssembly(Assembly):
    def _take(self, event: dict[str, Any]) -> None:
        self._take_usage(event.get("usageMetadata"))
        for name, value in event.items():
            if name not in ("candidates", "usageMetadata") and value is not None:
                self._answer.setdefault(name, value)
        for candidate in objects(event.get("candidates")):
            self._take_candidate(candidate)
        feedback = event.get("promptFeedback")
        is_blocked = isinstance(feedback, dict) and bool(feedback.get("blockReason"))
        has_ended = bool(self._parts) and all(part.get("finishReason") for part in self._parts.values())
        self.is_complete |= is_blocked or has_ended
        self.is_usage_final = self.is_complete  # each event reports what was used so far

    def _take_candidate(self, candidate: dict[str, Any]) -> None:
        held = self._part_of(candidate)
        held |= {name: value for name, value in candidate.items() if name not in ("content", "index")}
        if not isinstance(content := candidate.get("content"), dict):
            return
        merged = held.setdefault("content", {"role": content.get("role"), "parts": []})["parts"]
        for part in objects(content.get("parts")):
            if not (merged and _continues(merged[-1], part)):
                merged.append({})
            _merge(merged[-1], part)

    def _with_parts(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return self._answer | {"candidates": parts}


def _continues(held: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether a part of Google's content is the next piece of the same text, or of the same thought."""
    return "text" in held and "text" in part and bool(held.get("thought")) == bool(part.get("thought"))


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
