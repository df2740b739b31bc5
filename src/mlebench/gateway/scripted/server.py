"""The endpoint itself, on the loopback address."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mlebench.core import serve as http
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.core.serve import ServerLimits
from mlebench.gateway.scripted.apis import APIS, GEMINI, Api, StreamEvents, counted
from mlebench.gateway.scripted.script import Script, ScriptedAnswer, ScriptedRequest

LOOPBACK = "127.0.0.1"
MODEL = "scripted"  # the name in the list of models; any other is accepted too
_FAULTS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
_GOOGLE_FAULTS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


def serve(script: Script, port: int, log: Path | None, ready: Callable[[str], None]) -> None:
    """Answer until a signal ends it; `ready` gets the base URL."""
    try:
        listener = socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        raise PrerequisiteError(f"cannot listen on port {port}: {getattr(error, 'strerror', None) or error}") from None
    try:
        stream = log.open("a", encoding="utf-8") if log else None
    except OSError as error:
        raise PrerequisiteError(f"cannot write {log}: {reason_of(error)}") from None
    # Connections that the script cuts off are expected, so only fatal errors are logged.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    ready(f"http://{LOOPBACK}:{listener.getsockname()[1]}/v1")
    try:
        http.serve(application(script, stream), [listener], ServerLimits(connections=1024))
    finally:
        listener.close()
        if stream:
            stream.close()


def application(script: Script, log: TextIO | None = None) -> Starlette:
    """Each API with and without /v1, because clients differ in whether their base URL has it."""
    routes = [
        Route(f"{prefix}{path}", partial(_answered, api, script, log), methods=["POST"])
        for prefix in ("/v1", "")
        for path, api in APIS.items()
    ]
    routes += [
        Route(f"{prefix}/models/{{model:path}}:{{method}}", partial(_answered_as_google, script, log), methods=["POST"])
        for prefix in ("/v1beta", "/v1")
    ]
    return Starlette(routes=[*routes, *(Route(f"{prefix}/models", _models) for prefix in ("/v1", ""))])


async def _models(_: Request) -> Response:
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "mlebench"}
    return JSONResponse({"object": "list", "data": [model]})


async def _answered_as_google(script: Script, log: TextIO | None, request: Request) -> Response:
    if request.path_params["method"] in ("generateContent", "streamGenerateContent"):
        return await _answered(GEMINI, script, log, request)
    if request.path_params["method"] != "countTokens":
        return _google_fault(404, "There is no such method.", {})
    try:
        body = await request.json()
        tokens = counted(GEMINI.request(body.get("generateContentRequest") or body))
    except (ValueError, AttributeError, TypeError) as error:
        return _google_fault(400, f"This request cannot be read: {error}", {})
    return JSONResponse({"totalTokens": tokens})


async def _answered(api: Api, script: Script, log: TextIO | None, request: Request) -> Response:
    fault = _google_fault if api is GEMINI else _fault
    try:
        body = await request.json()
        scripted_request = api.request({**body, **request.path_params})
    except (ValueError, AttributeError, TypeError) as error:
        return fault(400, f"This request cannot be read: {error}", {})
    answer = script.answer(scripted_request)
    if log:
        _note(log, request, body, answer)
    await asyncio.sleep(answer.delay)
    if answer.garbage is not None:
        kind = "text/event-stream" if scripted_request.stream else "application/json"
        return Response(answer.garbage, answer.status, answer.headers, kind)
    if answer.status != 200:
        return fault(answer.status, answer.text or "The script says so.", answer.headers)
    return _spoken(api, answer, scripted_request)


def _spoken(api: Api, answer: ScriptedAnswer, scripted_request: ScriptedRequest) -> Response:
    if scripted_request.stream:
        events = _cut(_lines(api.stream(answer, scripted_request)), answer)
        return StreamingResponse(events, headers=dict(answer.headers), media_type="text/event-stream")
    content = json.dumps(api.body(answer, scripted_request)).encode()
    headers = {**answer.headers, "Content-Length": str(len(content))}
    return StreamingResponse(_cut([content], answer), headers=headers, media_type="application/json")


def _lines(events: StreamEvents) -> list[bytes]:
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        title = f"event: {name}\n" if name else ""
        lines.append(f"{title}data: {text}\n\n".encode())
    return lines


async def _cut(parts: list[bytes], answer: ScriptedAnswer) -> AsyncIterator[bytes]:
    """The parts; with `disconnect`, only half of them before the connection breaks."""
    content = b"".join(parts) if answer.disconnect else b""
    for part in [content[: len(content) // 2]] if answer.disconnect else parts:
        yield part
    if answer.disconnect:
        raise ConnectionAbortedError("the script cuts the connection")


def _fault(status: int, message: str, headers: Any) -> Response:
    """An error in a form that the clients of OpenAI and Anthropic understand."""
    kind = _FAULTS.get(status, "api_error")
    error = {"message": message, "type": kind, "param": None, "code": None}
    return JSONResponse({"type": "error", "error": error}, status, headers=dict(headers))


def _google_fault(status: int, message: str, headers: Any) -> Response:
    error = {"code": status, "message": message, "status": _GOOGLE_FAULTS.get(status, "INTERNAL")}
    return JSONResponse({"error": error}, status, headers=dict(headers))


def _note(log: TextIO, request: Request, body: Any, answer: ScriptedAnswer) -> None:
    line = {"time": time.time(), "path": request.url.path, "answer": answer.number or None, "request": body}
    log.write(json.dumps(line) + "\n")
    log.flush()
