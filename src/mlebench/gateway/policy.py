"""What a request may ask for. Anything that lets the provider reach a network, or the key owner's files, is refused.

Known fields pass, fields that lead out are refused by name, and all others are removed. `--allow-tool NAME` and
`--allow-field NAME` open what would be refused or removed. Unknown kinds of tools are refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlebench.gateway import fields
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.apis import Api, Messages, api_of, is_count
from mlebench.gateway.prices import LONG, SHORT
from mlebench.gateway.wire import RESPONSES, objects

_EMBEDDED = re.compile(r"data:|[A-Za-z0-9+/=_\s-]*$")  # a file within the request: with its type, or plain base64
_LEADS_OUT = "it leads out of the sandbox. Use functions of your own, and put all content into the request"
_STORED = "it stands for something that the provider stores. Put all content into the request"
_UNKNOWN_TOOL = "this kind of tool is unknown here. Use functions of your own"
_COSTS_MORE = "its price is not known"
# Values of known fields that pass; others would cost more than the table of prices says.
_VALUES: dict[str, set[str]] = {
    "service_tier": {"auto", "default", "flex", "scale", "standard", "standard_only"},
    "serviceTier": {"unspecified", "standard", "flex"},
    "speed": {"standard"},
}
MOST_ANSWERS = 128
_METADATA = ("metadata", "client_metadata", "labels")
VERSION, BETA = "anthropic-version", "anthropic-beta"


class RequestRefusedError(Exception):
    """A request that must not be passed on."""

    def __init__(self, status: int, kind: str, message: str):
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


@dataclass(frozen=True)
class AcceptedRequest:
    """A request that may be passed on."""

    model: str
    body: dict[str, Any]  # without what was removed
    removed: tuple[str, ...] = ()  # names of fields that are not known
    cache: str | None = None  # SHORT or LONG, if the request asks for it
    headers: Mapping[str, str] = field(default_factory=dict)  # of the agent's own, those that are passed on


def check(
    path: str, body: dict[str, Any], access: ModelAccess, headers: Mapping[str, str] | None = None
) -> AcceptedRequest:
    """The request as it may be passed on; RequestRefusedError if it asks for anything not allowed."""
    api = api_of(path)
    try:
        body = api.normalized(body)
    except ValueError as error:
        raise _malformed(f"The request cannot be read: {error}.") from None
    model = api.model(body)
    for name in [model, *api.other_models(body)]:
        if not isinstance(name, str) or name not in access.models:
            _refuse_model(f"{name!r:.100}" if isinstance(name, str) else "no model", access)
    request_check = _RequestCheck(api, access)
    accepted = request_check.accepted_fields(body, api.known)
    sent = request_check.headers(headers or {})
    return AcceptedRequest(str(model), accepted, tuple(request_check.removed), request_check.cache, sent)


def _refuse_model(model: str, access: ModelAccess) -> None:
    raise RequestRefusedError(
        403, "model_not_allowed", f"This run may not use {model}. It may use: {', '.join(access.models)}."
    )


def _malformed(message: str) -> RequestRefusedError:
    return RequestRefusedError(400, "invalid_request_error", message)


@dataclass
class _RequestCheck:
    api: Api
    access: ModelAccess
    removed: dict[str, None] = field(default_factory=dict)  # an ordered set
    cache: str | None = None

    def accepted_fields(self, body: dict[str, Any], known: frozenset[str], group: str = "") -> dict[str, Any]:
        accepted: dict[str, Any] = {}
        for name, value in body.items():
            is_known = name in known
            if is_known and not _is_odd_metadata(name, value):
                accepted[name] = self._known(name, value)
            elif name in self.access.fields and not is_known:
                accepted[name] = value
            elif value is None or value is False or value == []:
                continue  # it asks for nothing
            elif fields.names_stored(name) or (name == "prompt" and self.api.path == RESPONSES):
                self._require(name, _STORED)
                accepted[name] = value
            elif fields.leads_out(name):
                if fields.names_model(name) and not self._is_allowed(name):
                    _refuse_model(f"the field {name!r:.100}", self.access)
                self._require(name, _LEADS_OUT)
                accepted[name] = value
            else:
                self.removed[f"{group}{name}"[:100]] = None
        return accepted

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers have the three fates of fields; OpenAI's API needs none of the agent's."""
        if not self.api.has_betas:
            return {}
        version = headers.get(VERSION)
        if version and not re.fullmatch(r"\d{4}-\d\d-\d\d", version, re.ASCII):
            raise _malformed(f"`{VERSION}` must be a date.")
        betas = [beta.strip() for beta in headers.get(BETA, "").split(",") if beta.strip()]
        passed = {VERSION: version or "", BETA: ",".join(beta for beta in dict.fromkeys(betas) if self._passes(beta))}
        return {name: value for name, value in passed.items() if value}

    def _passes(self, beta: str) -> bool:
        if fields.is_known_beta(beta) or beta in self.access.fields:
            return True
        name = fields.beta_name(beta)
        if fields.beta_leads_out(name):
            if not self._is_allowed(fields.ALIASES.get(name, name.replace("-", "_"))):
                self._require(beta, _LEADS_OUT)
            return True
        self.removed[f"{BETA}.{beta}"[:100]] = None
        return False

    def _known(self, name: str, value: Any) -> Any:
        if name == "tools":
            return self._tools(value)
        if name in fields.GROUPS and value is not None:
            if not isinstance(value, dict):
                raise _malformed(f"`{name}` must be an object.")
            return self.accepted_fields(value, fields.GROUPS[name], f"{name}.")
        if name in fields.CONTENT_FIELDS:
            return self._content(value, name, name)
        self._require_value(name, value)
        if name == "cache_control":
            self._note_cache(value)
        if name in fields.SCHEMAS:
            self._require_own_schema(value)
        if name in _METADATA and isinstance(value, dict):
            odd = {key for key, item in value.items() if not isinstance(item, str)}  # LiteLLM obeys some of them
            self.removed |= dict.fromkeys(f"{name}.{key}"[:100] for key in odd)
            return {key: item for key, item in value.items() if key not in odd}
        return value

    def _require_value(self, name: str, value: Any) -> None:
        if name in ("n", "best_of", "candidateCount") and not (value is None or is_count(value, MOST_ANSWERS)):
            raise _malformed(f"`{name}` must be a number from 1 to {MOST_ANSWERS}.")
        if name == "stream" and not (value is None or isinstance(value, bool)):
            raise _malformed("`stream` must be true or false.")
        if _costs_more(self.api, name, value):
            self._require(name, _COSTS_MORE)
        if self.access.budget and _expands(name, value):
            self._require(name, "nobody knows how much input it makes, and this run has a budget")

    def _content(self, value: Any, name: str, top: str) -> Any:
        """A part of the conversation: without unknown fields, and without addresses or files of the provider."""
        if isinstance(value, list):
            return [self._content(item, name, top) for item in value]
        if isinstance(value, dict):
            return self._object(value, top)
        if isinstance(value, str) and name in fields.ADDRESSES and not value.startswith("data:"):
            self._require("url", _LEADS_OUT)
        return value

    def _object(self, value: dict[str, Any], top: str) -> dict[str, Any]:
        if self._is_reference(value):
            self._require("item_reference", _STORED)
        accepted: dict[str, Any] = {}
        for key, item in value.items():
            if key in fields.FILES and item:
                name = fields.FILES[key]
                self._require(name, _STORED if name == "file_id" else _LEADS_OUT)
                accepted[key] = item
            elif key in self.api.content:
                if _holds_address(value, key):
                    self._require("url", _LEADS_OUT)
                accepted[key] = self._part(key, item, top)
            elif key in self.access.fields:
                accepted[key] = item
            elif item is not None:
                self.removed[f"{top}.{key}"[:100]] = None
        return accepted

    def _part(self, key: str, item: Any, top: str) -> Any:
        if key == "tools":
            return self._tools(item)
        if key == "cache_control":
            self._note_cache(item)
        if key in fields.SCHEMAS:
            self._require_own_schema(item)
        if key == "tool" and isinstance(item, dict) and "reference" not in (kind := str(item.get("type"))):
            self._require(kind, _reason(kind))  # one that is defined there
        return item if key in self.api.opaque else self._content(item, key, top)

    def _tools(self, tools: Any) -> Any:
        if tools is None:
            return None
        return [self._tool(tool) for tool in tools] if isinstance(tools, list) else self._tool(tools)

    def _tool(self, tool: Any) -> Any:
        kinds = self.api.foreign_kinds(tool)
        for kind in kinds:
            self._require(kind, _reason(kind, *_kinds_inside(tool)))
        return tool if kinds else self._content(tool, "tool", "tools")

    def _note_cache(self, value: Any) -> None:
        if value:
            is_long = self.cache == LONG or (isinstance(value, dict) and value.get("ttl") not in (None, "5m"))
            self.cache = LONG if is_long else SHORT

    def _is_reference(self, item: dict[str, Any]) -> bool:
        """Whether an item of a conversation only names one that the provider has stored; the type may be left out."""
        kind = item.get("type")
        named = {name for name, value in item.items() if value is not None and name in self.api.content} - {"type"}
        return kind == "item_reference" or (kind is None and named == {"id"})

    def _require_own_schema(self, value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                self._require_own_schema(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                if key == "$ref" and isinstance(item, str) and not item.startswith("#"):
                    self._require("url", _LEADS_OUT)
                self._require_own_schema(item)

    def _require(self, name: str, reason: str) -> None:
        if not self._is_allowed(name):
            raise RequestRefusedError(403, "tool_not_allowed", f"This run may not use {name[:100]!r}: {reason}.")

    def _is_allowed(self, name: str) -> bool:
        names = {name, fields.ALIASES.get(name, name)}
        tools = self.access.tools
        return any(name == tool or name.startswith(f"{tool}_") for name in names for tool in tools) or bool(
            names & {*self.access.fields}
        )


def _is_odd_metadata(name: str, value: Any) -> bool:
    """Whether metadata is no object: LiteLLM parses a text, and obeys some of what is in it."""
    return name in _METADATA and not isinstance(value, dict | None)


def _holds_address(holder: dict[str, Any], key: str) -> bool:
    """Whether a field that should hold a file holds something else; a text, and the label of a search result, may."""
    value, kind = holder[key], holder.get("type")
    is_file = (key in ("file_data", "data") and kind != "text") or (key == "source" and kind != "search_result")
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return is_file and not all(_EMBEDDED.match(text.lstrip()[:200]) for text in texts)


def _reason(*kinds: str) -> str:
    """Why a tool of these kinds is refused."""
    return _LEADS_OUT if any(map(fields.tool_leads_out, kinds)) else _UNKNOWN_TOOL


def _kinds_inside(tool: Any) -> list[str]:
    """The kinds of tools in a named group."""
    members = tool.get("tools") if isinstance(tool, dict) else None
    return [str(member.get("type")) for member in objects(members)]


def _costs_more(api: Api, name: str, value: Any) -> bool:
    """Whether the value of a known field asks for more than the table of prices covers."""
    match name:
        case "service_tier" | "serviceTier" | "speed":
            return value is not None and not (isinstance(value, str) and value in _VALUES[name])
        case "modalities":
            return value not in (None, ["text"])
        case "responseModalities":
            return value not in (None, [], ["TEXT"], ["text"])
        case "reasoning":  # OpenRouter goes to another model, OpenAI thinks several times
            return isinstance(value, dict) and value.get("mode") not in (None, "standard")
        case "context_management":
            return isinstance(api, Messages) and not _only_clears(value)
    return False


def _expands(name: str, value: Any) -> bool:
    """Whether a template of the request's own makes the input: a short one can repeat text without end."""
    if name == "chat_template_kwargs":
        return isinstance(value, dict) and "chat_template" in value
    return name == "chat_template" and value is not None


def _only_clears(value: Any) -> bool:
    """Whether context management only leaves things out. To summarize, the provider would use more tokens."""
    edits = value.get("edits") if isinstance(value, dict) else value
    kinds = [edit.get("type") if isinstance(edit, dict) else None for edit in edits] if isinstance(edits, list) else []
    return edits is None or (bool(kinds) and all(str(kind).startswith("clear_") for kind in kinds)) or edits == []


def requested_output(path: str, body: dict[str, Any]) -> int | None:
    """The most tokens that one answer may have, if the request says so; the higher of two limits."""
    limits = api_of(path).limits(body)
    for name, value in limits.items():
        if not is_count(value, 1 << 40):
            raise _malformed(f"`{name}` must be a number of tokens.")
    return max(limits.values(), default=None)


def as_sent(path: str, body: dict[str, Any], output: int | None) -> dict[str, Any]:
    """The request as the endpoint gets it: streams report their usage, and answers end where the budget does."""
    api = api_of(path)
    sent = body if output is None else api.limited(body, output)
    return api.with_usage(sent) if api.is_stream(body) else sent


def wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))
