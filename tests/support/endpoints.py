"""A model's endpoint on loopback that behaves, or misbehaves, as a test wants; and a gateway in front of it."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec

from mlebench.core.serve import server_of
from mlebench.gateway.access import ModelAccess, plan_access
from mlebench.gateway.accounting import CallLedger, FinishedCall, Reservation
from mlebench.gateway.prices import Price, TokenUsage
from mlebench.gateway.server import Gateway
from mlebench.gateway.upstream import Timeouts
from mlebench.records.usage import ModelUsage

KEY = "sk-real-0123456789abcdef"
TOKEN = "token-of-the-run"
PRICE = Price(input=2.0, output=10.0, cached=0.5, cache_write=2.5, cache_write_long=4.0)
# Nothing here waits for these limits: an endpoint that answers may be slow, on a busy machine.
QUICK = Timeouts(connect=60, idle=60, call=100, retries=3, first_pause=0.01, longest_pause=1)
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
GEMINI = "/v1beta/models/m:generateContent"
GEMINI_USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 15,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 120,
}


class Call(BaseHTTPRequestHandler):
    """A request in progress, with ways to answer it."""

    protocol_version = "HTTP/1.1"

    @property
    def endpoint(self) -> "Endpoint":
        assert isinstance(self.server, Endpoint)
        return self.server

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.endpoint.seen.append(Seen(self.path, headers, self.body))
        with contextlib.suppress(OSError):
            self.endpoint.behave(self)

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        kind = "application/json" if not isinstance(body, bytes) else "text/html"
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, *events: Any, done: bool = True) -> None:
        """Events as JSON, one by one; then the connection ends."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            text = event if isinstance(event, str) else json.dumps(event)
            self.chunk(f"{name}data: {text}\n\n".encode())
        if done:
            self.chunk(b"")
        else:
            self.cut()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def cut(self) -> None:
        """Break the connection in the middle of something."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass(frozen=True)
class Seen:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def say_hello(call: Call) -> None:
    """Answer as a well-behaved endpoint does."""
    if call.path == "/v1/messages":
        _say_hello_as_anthropic(call)
    elif call.path.startswith("/v1beta/"):
        _say_hello_as_google(call)
    elif call.body.get("stream"):
        usage = [chunk([], usage=USAGE)] if (call.body.get("stream_options") or {}).get("include_usage") else []
        call.stream(chunk([delta("hel")]), chunk([delta("lo")]), chunk([delta(end=True)]), *usage, "[DONE]")
    else:
        message = {"role": "assistant", "content": "hello"}
        call.answer({"id": "1", "choices": [{"index": 0, "message": message}], "usage": USAGE})


def chunk(choices: list[Any], **more: Any) -> dict[str, Any]:
    return {"id": "1", "object": "chat.completion.chunk", "choices": choices, **more}


def delta(text: str | None = None, *, end: bool = False) -> dict[str, Any]:
    return {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": "stop" if end else None}


def _say_hello_as_anthropic(call: Call) -> None:
    usage = {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10}
    if not call.body.get("stream"):
        content = [{"type": "text", "text": "hello"}]
        call.answer({"type": "message", "content": content, "usage": usage | {"output_tokens": 20}})
        return
    call.stream(
        {"type": "message_start", "message": {"id": "1", "content": [], "usage": usage | {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    )


def gemini_event(*parts: Any, end: str | None = None, **more: Any) -> dict[str, Any]:
    candidate = {
        "content": {"role": "model", "parts": list(parts)},
        "index": 0,
        **({"finishReason": end} if end else {}),
    }
    return {"candidates": [candidate], "responseId": "1", **more}


def _say_hello_as_google(call: Call) -> None:
    if "alt=sse" not in call.path:
        call.answer(gemini_event({"text": "hello"}, end="STOP", usageMetadata=GEMINI_USAGE))
        return
    so_far = {"promptTokenCount": 100, "totalTokenCount": 100}
    end = gemini_event({"text": ""}, end="STOP", usageMetadata=GEMINI_USAGE)
    call.stream(gemini_event({"text": "hel"}, usageMetadata=so_far), gemini_event({"text": "lo"}), end)


class Endpoint(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.behave: Callable[[Call], None] = say_hello
        self.seen: list[Seen] = []
        self.hung = threading.Event()  # set: whatever hangs continues

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnected is not an error."""


@contextlib.contextmanager
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def kind_of(answer: httpx2.Response) -> str:
    """What an error of ours calls itself, in any provider's form."""
    error = answer.json()["error"]
    return error["type"] if "type" in error else error["details"][0]["reason"]


@dataclass
class Front:
    """A gateway that listens, and clients for it."""

    folder: Path
    port: int = 0
    gateway: Gateway | None = None
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=120, verify=False, trust_env=False))

    def post(self, path: str = "/v1/chat/completions", token: str = TOKEN, **body: Any) -> httpx2.Response:
        """A request to any API; `stream` and `max_tokens` are put where Google has them."""
        headers = {"authorization": f"Bearer {token}"} if path != "/v1/messages" else {"x-api-key": token}
        if path == GEMINI:
            headers = {"x-goog-api-key": token}
            path = path if not body.pop("stream", False) else path.replace(":g", ":streamG") + "?alt=sse"
            limit = {"maxOutputTokens": body.pop("max_tokens")} if "max_tokens" in body else {}
            config = limit | body.pop("generationConfig", {})
            body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **body}
            body |= {"generationConfig": config} if config else {}
        else:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | body
        return self.client.post(f"http://127.0.0.1:{self.port}{path}", json=body, headers=headers)

    @property
    def use(self) -> dict[str, Any]:
        assert self.gateway
        return json.loads(json.dumps(self.gateway.ledger.to_dict()))

    @property
    def trace(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]


class NewFront(Protocol):
    """Makes a gateway; options are those of planning."""

    def __call__(self, timing: Timeouts = QUICK, seconds: float = 100, **options: Any) -> Front: ...


def access_to(server: Endpoint, models: tuple[str, ...] = ("m", "other"), **options: Any) -> ModelAccess:
    return plan_access(models, {"m": PRICE}, endpoint=server.url, **options)


def call_of(model: str, tokens: TokenUsage) -> FinishedCall:
    """A call that was answered."""
    return FinishedCall(model, tokens, 1.0, is_answered=True)


def counted(folder: Path, *calls: FinishedCall) -> ModelUsage:
    """What a gateway writes about these calls, for a run's record. A million tokens of `m` cost $100 and $1000."""
    price = Price(input=100.0, output=1000.0)
    ledger = CallLedger(
        ModelAccess("openai", "http://x/v1", ("m", "unpriced"), prices={"m": price}), folder / "use.json"
    )
    for call in calls:
        ledger.settle(Reservation(0.0), call)
    ledger.write()
    return msgspec.json.decode((folder / "use.json").read_bytes(), type=ModelUsage)


@contextlib.contextmanager
def front_of(access: ModelAccess, folder: Path, timing: Timeouts = QUICK, seconds: float = 100) -> Iterator[Front]:
    front = Front(folder)
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    front.port = listening.getsockname()[1]
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        front.gateway = gateway = Gateway(
            access,
            token=TOKEN,
            key=KEY,
            use=folder / "use.json",
            trace=folder / "calls.jsonl",
            seconds=seconds,
            timing=timing,
        )
        server = server_of(gateway)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        ready.set()
        await asyncio.to_thread(stop.wait)
        await gateway.close()
        server.should_exit = server.force_exit = True
        await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(120)
    try:
        yield front
    finally:
        stop.set()
        thread.join()
        listening.close()
        front.client.close()
