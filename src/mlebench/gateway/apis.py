"""A class for each API: the paths, limits, tools, errors and streams in which they differ."""

import json
import re
from collections.abc import Iterable
from typing import Any

from mlebench.gateway import fields
from mlebench.gateway.assembly import Assembly, ChatAssembly, GeminiAssembly, MessageAssembly, ResponseAssembly
from mlebench.gateway.prices import SHORT
from mlebench.gateway.wire import (
    CHAT,
    COMPLETIONS,
    COUNT_CONTENT,
    COUNT_TOKENS,
    GENERATE,
    MESSAGES,
    RESPONSES,
    STREAM_GENERATE,
)

# Tools that run where the agent runs, or search the tools of the request itself.
_FUNCTIONS = {"function", "custom"}
_OPENAI_TOOLS = {*_FUNCTIONS, "local_shell", "apply_patch", "tool_search"}
_ANTHROPIC_TOOLS = re.compile(r"custom|(bash|text_editor|computer|memory)_\d{8}|tool_search_tool_(regex|bm25)(_\d{8})?")

_GOOGLE_PATH = re.compile(
    r"/v1(?:beta)?/models/(.+):(generateContent|streamGenerateContent|countTokens)"
)  # newer clients: v1
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Api:
    """Chat completions and completions; the others differ from them in what they override."""

    assembly: type[Assembly] = ChatAssembly
    is_free = False  # it only counts tokens
    usual_cache: str | None = SHORT  # how long input is cached if the request does not ask for it
    has_betas = False
    content = fields.CONTENT  # what a conversation and its tools consist of
    opaque = fields.OPAQUE

    def __init__(self, path: str, *output_limits: str):
        self.path = path
        self.output_limits = output_limits  # where a request says how long an answer may be; the first is what we write

    @property
    def known(self) -> frozenset[str]:
        """The fields of a request that lead nowhere."""
        return fields.KNOWN[self.path]

    def normalized(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with one spelling for each field; ValueError if it has a field in two."""
        return body

    def model(self, body: dict[str, Any]) -> Any:
        """The name of the model that a request asks for."""
        return body.get("model")

    def other_models(self, body: dict[str, Any]) -> Iterable[Any]:
        """Further models that it names: some endpoints fall back to `models`."""
        named = body.get("models")
        return named if isinstance(named, list) else ()

    def is_stream(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def usage(self, answer: dict[str, Any]) -> Any:
        """What a whole answer says that it used."""
        return answer.get("usage")

    def key_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def error_body(self, status: int, kind: str, message: str) -> dict[str, Any]:  # noqa: ARG002 Google has it
        """An error as the provider's client expects it."""
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        """An error as an event of a stream that has begun."""
        return b"data: " + json.dumps(self.error_body(status, kind, message)).encode() + b"\n\n"

    def foreign_kinds(self, tool: Any) -> list[str]:
        """The kinds of a tool that are not known to run where the agent runs."""
        kind = tool.get("type") if isinstance(tool, dict) else None
        is_known = (isinstance(kind, str) and kind in _OPENAI_TOOLS) or _is_namespace(tool)
        return [] if is_known else [str(kind)]

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

    def error_event(self, status: int, kind: str, message: str) -> bytes:  # noqa: ARG002
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

    def error_body(self, status: int, kind: str, message: str) -> dict[str, Any]:  # noqa: ARG002
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        return b"event: error\n" + super().error_event(status, kind, message)

    def foreign_kinds(self, tool: Any) -> list[str]:
        if not isinstance(tool, dict):
            return ["None"]
        kind = tool.get("type")
        is_known = kind is None or (isinstance(kind, str) and _ANTHROPIC_TOOLS.fullmatch(kind))
        return [] if is_known else [str(kind)]

    def with_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


class CountTokens(Messages):
    is_free = True


class Gemini(Api):
    """Google's. The path names the model, and says whether the answer is a stream."""

    assembly = GeminiAssembly
    content = fields.GOOGLE_CONTENT
    opaque = fields.GOOGLE_OPAQUE

    def __init__(self, path: str, model: str, method: str):
        super().__init__(path, "maxOutputTokens")
        self._model = model
        self.is_sse = method == "streamGenerateContent"
        self.is_free = method == "countTokens"

    @property
    def known(self) -> frozenset[str]:
        return fields.KNOWN[COUNT_CONTENT if self.is_free else GENERATE]

    def normalized(self, body: dict[str, Any]) -> dict[str, Any]:
        return _in_camel_case(body)

    def model(self, body: dict[str, Any]) -> Any:  # noqa: ARG002
        return self._model

    def other_models(self, body: dict[str, Any]) -> Iterable[Any]:
        nested = body.get("generateContentRequest")
        named = [holder.get("model") for holder in (body, nested) if isinstance(holder, dict)]
        return [name.removeprefix("models/") if isinstance(name, str) else name for name in named if name is not None]

    def is_stream(self, body: dict[str, Any]) -> bool:  # noqa: ARG002
        return self.is_sse

    def usage(self, answer: dict[str, Any]) -> Any:
        return answer.get("usageMetadata")

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def error_body(self, status: int, kind: str, message: str) -> dict[str, Any]:
        name = _GOOGLE_STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": kind, "domain": "mlebench"}
        return {"error": {"code": status, "message": message, "status": name, "details": [detail]}}

    def foreign_kinds(self, tool: Any) -> list[str]:
        if not isinstance(tool, dict):
            return ["None"]
        return [kind for kind, value in tool.items() if kind != "functionDeclarations" and value is not None]

    def limits(self, body: dict[str, Any]) -> dict[str, Any]:
        return super().limits(body.get("generationConfig") or {})

    def limited(self, body: dict[str, Any], output: int) -> dict[str, Any]:
        """Thinking is part of what is limited, and its own budget may be higher."""
        return body | {"generationConfig": super().limited(body.get("generationConfig") or {}, output)}

    def answers(self, body: dict[str, Any]) -> int:
        return (body.get("generationConfig") or {}).get("candidateCount") or 1

    def with_usage(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


def _in_camel_case(value: Any) -> Any:
    """Google reads `maxOutputTokens` and `max_output_tokens` alike."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for name, item in value.items():
        camel = re.sub(r"(?<=[a-zA-Z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)
        if camel in renamed:
            raise ValueError(f"it has {camel[:100]!r} twice")
        renamed[camel] = item if camel in fields.GOOGLE_OPAQUE else _in_camel_case(item)
    return renamed


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

PATHS = (*_BY_PATH, GENERATE, STREAM_GENERATE, COUNT_CONTENT)


def api_at(path: str) -> Api | None:
    """The API whose requests go to this path."""
    if match := _GOOGLE_PATH.fullmatch(path):
        return Gemini(path, match[1], match[2])
    return _BY_PATH.get(path)


def api_of(path: str) -> Api:
    """Likewise, for a path that is known."""
    if api := api_at(path):
        return api
    raise KeyError(path)


def language_of(path: str) -> Api:
    """The API whose errors a client understands that sends requests to this path, known or not."""
    if path.startswith("/v1beta/"):
        return Gemini(path, "", "")
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
