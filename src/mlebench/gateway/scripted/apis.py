"""How each API reads a request and writes an answer, in one piece or as a stream of events."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from mlebench.gateway.scripted.script import ScriptedAnswer, ScriptedRequest, ToolCall

Body = dict[str, Any]
StreamEvents = Iterator[tuple[str | None, Body | str]]  # (name of the event, data)
PIECES = 4  # the pieces that a text is streamed in, as from a real model
_TEXTS = ("text", "content", "output", "input", "arguments", "function", "tool_calls")


@dataclass(frozen=True)
class Api:
    request: Callable[[Body], ScriptedRequest]
    body: Callable[[ScriptedAnswer, ScriptedRequest], Body]
    stream: Callable[[ScriptedAnswer, ScriptedRequest], StreamEvents]


def _text(value: Any) -> str:
    """All text in a message, however deeply nested."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    if isinstance(value, dict):
        return "\n".join(filter(None, (_text(value.get(key)) for key in _TEXTS)))
    return ""


def _scripted_request(body: Body, messages: list[Any], *, with_usage: bool = True) -> ScriptedRequest:
    dialogue = [item for item in messages if isinstance(item, dict)]
    own = [_is_own(item) for item in dialogue]
    inputs = [item for item, is_own in zip(dialogue, own, strict=True) if not is_own and item.get("role") != "system"]
    tools = [tool for tool in [*(body.get("tools") or []), *(body.get("functions") or [])] if isinstance(tool, dict)]
    names = [tool.get("name") or (tool.get("function") or {}).get("name") for tool in tools]
    start = _text(body.get("system")) or _text(body.get("instructions"))
    return ScriptedRequest(
        model=str(body.get("model")),
        stream=body.get("stream") is True,
        with_usage=with_usage,
        turn=sum(is_own and not before for before, is_own in zip([False, *own], own, strict=False)),
        last=_text(inputs[-1]) if inputs else "",
        prompt="\n".join(filter(None, [start, *map(_text, dialogue)])),
        tools=tuple(str(name) for name in names if name),
    )


def _is_own(message: Body) -> bool:
    return message.get("role") == "assistant" or message.get("type") in ("function_call", "reasoning")


def counted(request: ScriptedRequest) -> int:
    """About how many tokens a request has: one for four characters."""
    return len(request.prompt) // 4 + 1


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _arguments(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


# Chat completions


def _chat_request(body: Body) -> ScriptedRequest:
    wanted = (body.get("stream_options") or {}).get("include_usage") is True
    return _scripted_request(body, body.get("messages") or [], with_usage=wanted)


def _chat_usage(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    tokens = answer.tokens(request)
    return {
        "prompt_tokens": tokens["input"],
        "completion_tokens": tokens["output"],
        "total_tokens": tokens["input"] + tokens["output"],
        "prompt_tokens_details": {"cached_tokens": tokens["cached"]},
        "completion_tokens_details": {"reasoning_tokens": tokens["reasoning"]},
    }


def _chat_calls(answer: ScriptedAnswer) -> list[Body]:
    return [
        {"id": _id("call"), "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
        for call in answer.tool_calls
    ]


def _chat_head(kind: str, request: ScriptedRequest) -> Body:
    return {"id": _id("chatcmpl"), "object": kind, "created": int(time.time()), "model": request.model}


def _chat_end(answer: ScriptedAnswer) -> str:
    return "tool_calls" if answer.tool_calls else "stop"


def _chat_body(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.tool_calls:
        message["tool_calls"] = _chat_calls(answer)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_end(answer)}
    return {**_chat_head("chat.completion", request), "choices": [choice], "usage": _chat_usage(answer, request)}


def _chat_stream(answer: ScriptedAnswer, request: ScriptedRequest) -> StreamEvents:
    head = _chat_head("chat.completion.chunk", request)
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(answer.text)]
    for index, call in enumerate(_chat_calls(answer)):
        function = call["function"]
        deltas.append(
            {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
        )
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(function["arguments"])
        ]
    for delta in deltas:
        yield None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _chat_end(answer)}]}
    if request.with_usage:
        yield None, {**head, "choices": [], "usage": _chat_usage(answer, request)}
    yield None, "[DONE]"


# Completions


def _completion_request(body: Body) -> ScriptedRequest:
    wanted = (body.get("stream_options") or {}).get("include_usage") is True
    return _scripted_request(body, [{"role": "user", "content": body.get("prompt")}], with_usage=wanted)


def _completion(request: ScriptedRequest, text: str, end: str | None) -> Body:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": end}
    return {**_chat_head("text_completion", request), "choices": [choice]}


def _completion_body(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    return {**_completion(request, answer.text, "stop"), "usage": _chat_usage(answer, request)}


def _completion_stream(answer: ScriptedAnswer, request: ScriptedRequest) -> StreamEvents:
    for piece in _pieces(answer.text):
        yield None, _completion(request, piece, None)
    yield None, _completion(request, "", "stop")
    if request.with_usage:
        yield None, {**_completion(request, "", "stop"), "choices": [], "usage": _chat_usage(answer, request)}
    yield None, "[DONE]"


# Responses


def _response_request(body: Body) -> ScriptedRequest:
    content = body.get("input")
    return _scripted_request(body, content if isinstance(content, list) else [{"role": "user", "content": content}])


def _response_items(answer: ScriptedAnswer) -> list[Body]:
    items: list[Body] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append(
            {"id": _id("msg"), "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    for call in answer.tool_calls:
        named = {"call_id": _id("call"), "name": call.name, "arguments": _arguments(call)}
        items.append({"id": _id("fc"), "type": "function_call", "status": "completed", **named})
    return items


def _response_body(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    tokens = answer.tokens(request)
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": request.model,
        "output": _response_items(answer),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": tokens["input"],
            "input_tokens_details": {"cached_tokens": tokens["cached"]},
            "output_tokens": tokens["output"],
            "output_tokens_details": {"reasoning_tokens": tokens["reasoning"]},
            "total_tokens": tokens["input"] + tokens["output"],
        },
    }


def _response_stream(answer: ScriptedAnswer, request: ScriptedRequest) -> StreamEvents:
    body = _response_body(answer, request)
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    events: list[Body] = [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]
    for index, item in enumerate(body["output"]):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": body})
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def _item_events(index: int, item: Body) -> list[Body]:
    at: Body = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        (part,) = item["content"]
        empty = {**item, "status": "in_progress", "content": []}
        at["content_index"] = 0
        kind, key, text = "output_text", "text", part["text"]
        before = [{"type": "response.content_part.added", **at, "part": {**part, "text": ""}}]
        after = [{"type": "response.content_part.done", **at, "part": part}]
    else:
        empty = {**item, "status": "in_progress", "arguments": ""}
        kind, key, text = "function_call_arguments", "arguments", item["arguments"]
        before = after = []
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        *before,
        *({"type": f"response.{kind}.delta", **at, "delta": piece} for piece in _pieces(text)),
        {"type": f"response.{kind}.done", **at, key: text},
        *after,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


# Messages


def _message_request(body: Body) -> ScriptedRequest:
    return _scripted_request(body, body.get("messages") or [])


def _message_blocks(answer: ScriptedAnswer) -> list[Body]:
    blocks: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
    for call in answer.tool_calls:
        blocks.append({"type": "tool_use", "id": _id("toolu"), "name": call.name, "input": call.arguments})
    return blocks


def _message_usage(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    tokens = answer.tokens(request)
    return {
        "input_tokens": tokens["input"] - tokens["cached"],  # here, unlike elsewhere, cached ones are separate
        "cache_read_input_tokens": tokens["cached"],
        "cache_creation_input_tokens": 0,
        "output_tokens": tokens["output"],
    }


def _message_body(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    return {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": _message_blocks(answer),
        "stop_reason": "tool_use" if answer.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": _message_usage(answer, request),
    }


def _message_stream(answer: ScriptedAnswer, request: ScriptedRequest) -> StreamEvents:
    body = _message_body(answer, request)
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 1}}
    events: list[Body] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(body["content"]):
        if block["type"] == "text":
            empty, text = {**block, "text": ""}, block["text"]
            kind, key = "text_delta", "text"
        else:
            content = block["input"]
            empty, text = {**block, "input": {}}, content if isinstance(content, str) else json.dumps(content)
            kind, key = "input_json_delta", "partial_json"
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        for piece in _pieces(text):
            events.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": body["usage"]["output_tokens"]}})
    events.append({"type": "message_stop"})
    for event in events:
        yield event["type"], event


# Gemini


def _gemini_request(body: Body) -> ScriptedRequest:
    messages = [
        {"role": "assistant" if item.get("role") == "model" else "user", "content": _gemini_texts(item)}
        for item in body.get("contents") or []
        if isinstance(item, dict)
    ]
    tools = [function for tool in body.get("tools") or [] for function in tool.get("functionDeclarations") or []]
    system = _gemini_texts(body.get("systemInstruction") or {})
    stream = body.get("method") == "streamGenerateContent"
    return _scripted_request({"model": body.get("model"), "stream": stream, "tools": tools, "system": system}, messages)


def _gemini_texts(content: Body) -> list[str]:
    texts = []
    for part in content.get("parts") or []:
        held = part.get("functionResponse") or part.get("functionCall")
        texts.append(part.get("text") or (json.dumps(held, ensure_ascii=False) if held else ""))
    return texts


def _gemini_event(request: ScriptedRequest, parts: list[Body], end: str | None = None) -> Body:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    ended = {"finishReason": end} if end else {}
    return {"candidates": [candidate | ended], "modelVersion": request.model, "responseId": _id("r")}


def _gemini_usage(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    tokens = answer.tokens(request)
    return {
        "promptTokenCount": tokens["input"],
        "cachedContentTokenCount": tokens["cached"],
        "candidatesTokenCount": tokens["output"] - tokens["reasoning"],
        "thoughtsTokenCount": tokens["reasoning"],
        "totalTokenCount": tokens["input"] + tokens["output"],
    }


def _gemini_calls(answer: ScriptedAnswer) -> list[Body]:
    return [{"functionCall": {"name": call.name, "args": call.arguments}} for call in answer.tool_calls]


def _gemini_body(answer: ScriptedAnswer, request: ScriptedRequest) -> Body:
    texts = [{"text": answer.text}] if answer.text else []
    event = _gemini_event(request, [*texts, *_gemini_calls(answer)], "STOP")
    return {**event, "usageMetadata": _gemini_usage(answer, request)}


def _gemini_stream(answer: ScriptedAnswer, request: ScriptedRequest) -> StreamEvents:
    """A call comes in one piece, unlike a text."""
    for part in [*({"text": piece} for piece in _pieces(answer.text)), *_gemini_calls(answer)]:
        yield None, _gemini_event(request, [part])
    last = _gemini_event(request, [{"text": ""}], "STOP")
    yield None, {**last, "usageMetadata": _gemini_usage(answer, request)}


APIS = {
    "/chat/completions": Api(_chat_request, _chat_body, _chat_stream),
    "/completions": Api(_completion_request, _completion_body, _completion_stream),
    "/responses": Api(_response_request, _response_body, _response_stream),
    "/messages": Api(_message_request, _message_body, _message_stream),
}
GEMINI = Api(_gemini_request, _gemini_body, _gemini_stream)
