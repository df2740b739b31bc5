"""A class for each API: the paths, limits, tools, errors and streams in which they differ."""

import json
import re
from typing import Any

from mlebench.gateway import fields
from mlebench.gateway.assembly import Assembly, ChatAssembly, MessageAssembly, ResponseAssembly
from mlebench.gateway.prices import SHORT
from mlebench.gateway.wire import CHAT, COMPLETIONS, COUNT_TOKENS, MESSAGES, RESPONSES

# Tools that run where the agent runs, or search the tools of the request itself.
_FUNCTIONS = {"function", "custom"}
_OPENAI_TOOLS = {*_FUNCTIONS, "local_shell", "apply_patch", "tool_search"}
_ANTHROPIC_TOOLS = re.compile(r"custom|(bash|text_editor|computer|memory)_\d{8}|tool_search_tool_(regex|bm25)(_\d{8})?")


class Api:
    """Chat completions and completions; the others differ from them in what they override."""

    assembly: type[Assembly] = ChatAssembly
    is_free = False  # it only counts tokens
    usual_cache: str | None = SHORT  # how long input is cached if the request does not ask for it
    has_betas = False

    def __init__(self, path: str, *output_limits: str):
        self.path = path
        self.output_limits = output_limits  # where a request says how long an answer may be; the first is what we write

    @property
    def known(self) -> frozenset[str]:
        """The fields of a request that lead nowhere."""
        return fields.KNOWN[self.path]

    def key_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def error_body(self, kind: str, message: str) -> dict[str, Any]:
        """An error as the provider's client expects it."""
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    def error_event(self, kind: str, message: str) -> bytes:
        """An error as an event of a stream that has begun."""
        return b"data: " + json.dumps(self.error_body(kind, message)).encode() + b"\n\n"

    def runs_at_agent(self, tool: Any) -> bool:
        """Whether a tool is known, and runs where the agent runs."""
        kind = tool.get("type") if isinstance(tool, dict) else None
        return (isinstance(kind, str) and kind in _OPENAI_TOOLS) or _is_namespace(tool)

    def limits(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a request says about the length of an answer."""
        return {name: body[name] for name in self.output_limits if body.get(name) is not None}

    def limited(self, body: dict[str, Any], output: int) -> dict[str, Any]:
        """The request with an answer of at most `output` tokens."""
        names = self.limits(body) or self.output_limits[:1]
        limited = body | {name: min(output, body.get(name) or output) for name in names}
        if thinking_budget(body) >= output:  # it must be below the limit
            limited["thinking"] = {**body["thinking"], "budget_tokens": output - 1}
        return limited

    def answers(self, body: dict[str, Any]) -> int:
        """How many answers a request asks for."""
        prompts: Any = body.get("prompt")
        per_prompt = max(body.get(name) or 1 for name in ("n", "best_of"))
        is_list = isinstance(prompts, list) and any(isinstance(item, str | list) for item in prompts)
        return per_prompt * (len(prompts) if is_list else 1)

    def with_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request so that its stream reports its usage."""
        options = body.get("stream_options")
        return body | {"stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}


class Responses(Api):
    assembly = ResponseAssembly

    def error_event(self, kind: str, message: str) -> bytes:
        body = {"type": "error", "code": kind, "message": message, "param": None}
        return b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"

    def with_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


class Messages(Api):
    """Anthropic's."""

    assembly = MessageAssembly
    usual_cache = None
    has_betas = True

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}

    def error_body(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_event(self, kind: str, message: str) -> bytes:
        return b"event: error\n" + super().error_event(kind, message)

    def runs_at_agent(self, tool: Any) -> bool:
        kind = tool.get("type") if isinstance(tool, dict) else None
        return kind is None or (isinstance(kind, str) and bool(_ANTHROPIC_TOOLS.fullmatch(kind)))

    def with_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


class CountTokens(Messages):
    is_free = True


_BY_PATH = {
    api.path: api
    for api in (
        Api(CHAT, "max_completion_tokens", "max_tokens", "n_predict"),
        Api(COMPLETIONS, "max_tokens", "max_completion_tokens", "n_predict"),
        Responses(RESPONSES, "max_output_tokens"),
        Messages(MESSAGES, "max_tokens"),
        CountTokens(COUNT_TOKENS),
    )
}

PATHS = tuple(_BY_PATH)


def api_at(path: str) -> Api | None:
    """The API whose requests go to this path."""
    return _BY_PATH.get(path)


def api_of(path: str) -> Api:
    """Likewise, for a path that is known."""
    return _BY_PATH[path]


def language_of(path: str) -> Api:
    """The API whose errors a client understands that sends requests to this path, known or not."""
    return api_at(path) or _BY_PATH[MESSAGES if path.startswith(MESSAGES) else CHAT]


def is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def thinking_budget(body: dict[str, Any]) -> int:
    """How much of an answer may be thinking, in Anthropic's API; 0 if the request does not say."""
    thinking = body.get("thinking")
    budget: Any = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return budget if is_count(budget, 1 << 40) else 0


def _is_namespace(tool: Any) -> bool:
    """Whether a tool is a named group of functions, as Codex sends them."""
    if not isinstance(tool, dict) or tool.get("type") != "namespace" or not isinstance(tool.get("tools"), list):
        return False
    kinds = [member.get("type") if isinstance(member, dict) else None for member in tool["tools"]]
    return all(isinstance(kind, str) and kind in _FUNCTIONS for kind in kinds)
