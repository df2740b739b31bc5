"""What a request may ask for. Anything that lets the provider reach a network, or the key owner's files, is refused.

Each refusal has a name; `--allow-tool NAME` lifts it. Unknown kinds of tools are refused.
"""

import re
from collections.abc import Iterator
from typing import Any

from mlebench.gateway.access import ModelAccess
from mlebench.gateway.wire import CHAT, COMPLETIONS, OUTPUT_LIMITS, is_anthropic

# Tools that run where the agent runs.
_OPENAI_TOOLS = {"function", "custom", "local_shell", "apply_patch"}
_ANTHROPIC_TOOLS = re.compile(r"custom|(bash|text_editor|computer|memory)_\d{8}")
# Fields that refer to things outside the request: stored conversations, prompts and files, or searches.
_STORED = {"previous_response_id", "conversation", "background", "prompt_id", "container"}
_SUSPECT = re.compile(r"search|plugin|mcp|connector|data_sources|retriev|brows")
_ADDRESSES = {"url", "image_url", "file_url", "video_url", "audio_url"}
_FILES = {"file_id", "file_ids", "vector_store_ids"}
# The agent chooses what these hold, and no provider interprets it.
_OPAQUE = {"arguments", "parameters", "input_schema", "schema", "metadata"}
_OWN_INPUT = ("tool_use", "custom_tool_call")
BYTES_PER_TOKEN = 2  # dense text, such as tables of numbers; prose has about 4
MEDIA_TOKENS, MEDIA_BYTES_PER_TOKEN = 1500, 50


class RefusedError(Exception):
    """A request that must not be passed on."""

    def __init__(self, status: int, kind: str, message: str):
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


def check(path: str, body: dict[str, Any], access: ModelAccess) -> str:
    """The model that a request asks for; RefusedError if it asks for anything not allowed."""
    model = body.get("model")
    named = body.get("models")  # some endpoints fall back to these if the first fails
    for name in [model, *(named if isinstance(named, list) else [])]:
        if not isinstance(name, str) or name not in access.models:
            asked = f"{name!r:.100}" if isinstance(name, str) else "no model"
            raise RefusedError(
                403, "model_not_allowed", f"This run may not use {asked}. It may use: {', '.join(access.models)}."
            )
    for name in _asked_for(path, body):
        if not any(name == tool or name.startswith(f"{tool}_") for tool in access.tools):
            raise RefusedError(
                403,
                "tool_not_allowed",
                f"This run may not use {name[:100]!r}: it leads out of the sandbox. "
                "Use functions of your own, and put all content into the request.",
            )
    return str(model)


def _asked_for(path: str, body: dict[str, Any]) -> Iterator[str]:
    """The names of everything in a request that needs permission."""
    for field, value in body.items():
        if value not in (None, False, [], {}) and (field in _STORED or _SUSPECT.search(field)):
            yield {"web_search_options": "web_search", "mcp_servers": "mcp"}.get(field, field)
        if field == "prompt" and isinstance(value, dict):
            yield "prompt"  # one stored at the provider
    tools = body.get("tools") or []
    for tool in tools if isinstance(tools, list) else [tools]:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if is_anthropic(path):
            known = kind is None or (isinstance(kind, str) and _ANTHROPIC_TOOLS.fullmatch(kind))
        else:
            known = kind in _OPENAI_TOOLS
        if not known:
            yield str(kind)
    for field in ("messages", "input", "system", "instructions"):
        yield from _references(body.get(field))


def _references(value: Any) -> Iterator[str]:
    """Addresses and files that content refers to instead of including."""
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    if not isinstance(value, dict):
        return
    if value.get("type") == "item_reference":
        yield "item_reference"
    if value.get("type") == "file" and isinstance(value.get("file_id"), str):
        yield "file_id"
    for name, item in value.items():
        if name in _OPAQUE or (name == "input" and value.get("type") in _OWN_INPUT):
            continue
        if name in _ADDRESSES and isinstance(item, str) and not item.startswith("data:"):
            yield "url"
        elif name in _FILES and item:
            yield "file_id"
        else:
            yield from _references(item)


def estimated_input(value: Any, name: str = "") -> int:
    """About how many tokens a request has, erring on the high side."""
    match value:
        case str() if name in {"url", "image_url", "file_data", "data"} and len(value) > 1000:
            return max(MEDIA_TOKENS, len(value) // MEDIA_BYTES_PER_TOKEN)
        case str():
            return len(value.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1
        case dict():
            return sum(estimated_input(item, key) + len(key) // BYTES_PER_TOKEN for key, item in value.items())
        case list():
            return sum(4 + estimated_input(item) for item in value)
    return 1


def asked_output(path: str, body: dict[str, Any]) -> int | None:
    """The most tokens that one answer may have, if the request says so; the higher of two limits."""
    asked = {name: body[name] for name in OUTPUT_LIMITS[path] if body.get(name) is not None}
    for name, value in asked.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise RefusedError(400, "invalid_request_error", f"`{name}` must be a number of tokens")
    return max(asked.values(), default=None)


def answers(body: dict[str, Any]) -> int:
    """How many answers a request asks for."""
    most = 1
    for name in ("n", "best_of"):
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            most = max(most, min(value, 1 << 20))
    prompts = body.get("prompt")
    return most * (len(prompts) if isinstance(prompts, list) and prompts and isinstance(prompts[0], str | list) else 1)


def as_sent(path: str, body: dict[str, Any], output: int | None) -> dict[str, Any]:
    """The request as the endpoint gets it: streams report their usage, and answers end where the budget does."""
    sent = dict(body)
    if output is not None:
        sent[OUTPUT_LIMITS[path][0]] = output
    if is_stream(body) and path in (CHAT, COMPLETIONS):
        options = body.get("stream_options")
        sent["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return sent


def is_stream(body: dict[str, Any]) -> bool:
    return bool(body.get("stream"))


def wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))
