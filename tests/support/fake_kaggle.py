"""A server on loopback that speaks the part of Kaggle's API that a download needs, and misbehaves when told to."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, KEY, TOKEN = "somebody", "0123456789abcdef", "KGAT_token"
BASIC = "Basic " + base64.b64encode(f"{USER}:{KEY}".encode()).decode()
BEARER = f"Bearer {TOKEN}"
SIGNATURE = "X-Goog-Signature=secret"


@dataclass
class Fault:
    """How one answer differs from a good one."""

    status: int | None = None  # this status and `message` instead of an answer
    message: str = "something is wrong"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # the connection ends after this many bytes of the body
    stall: bool = False  # and stays open, silent
    ignores_range: bool = False


@dataclass
class Call:
    """One request, and how many bytes of a body it was answered with."""

    name: str  # the method of the API, or `storage`
    headers: dict[str, str]
    body: dict[str, Any]
    status: int = 0
    sent: int = 0


@dataclass
class FakeKaggle:
    archive: bytes
    tag: str = '"one"'
    logins: set[str] = field(default_factory=lambda: {BASIC, BEARER})
    competitions: set[str] = field(default_factory=lambda: {"spaceship-titanic"})
    # Of other methods: a value, or a function of the body.
    answers: dict[str, Any] = field(default_factory=lambda: {"GetCompetitionDataFilesSummary": {}})
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)  # what is known about a notebook, by owner/name
    faults: dict[str, list[Fault]] = field(default_factory=dict)  # of each method, or `storage`: used up one by one
    calls: list[Call] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def fault(self, name: str) -> Fault:
        waiting = self.faults.get(name, [])
        return waiting.pop(0) if waiting else Fault()

    def called(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    @contextmanager
    def serving(self) -> Iterator["FakeKaggle"]:
        class Bound(_Handler):
            kaggle = self

        server = _Server(("127.0.0.1", 0), Bound)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.released.set()
            server.shutdown()
            server.server_close()
            thread.join(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects is not an error here."""


def _competition_key(method: str) -> str:
    return "competition" if method == "ListKernels" else "competitionName"


class _Handler(BaseHTTPRequestHandler):
    kaggle: FakeKaggle
    timeout = 200

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self._answer_storage()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        name = self.path.rpartition("/")[2]
        call = self._record(name, body)
        fault = self.kaggle.fault(name)
        if fault.status:
            self._json(call, {"code": fault.status, "message": fault.message}, fault.status, fault.headers)
        elif name == "IntrospectToken":
            active = f"Bearer {body['token']}" in self.kaggle.logins
            self._json(call, {"active": active, "username": USER if active else ""})
        elif self.headers.get("Authorization") not in self.kaggle.logins:
            self._json(call, {"code": 401, "message": "Unauthenticated"}, 401)
        elif name == "GetKernel":
            blob = self.kaggle.kernels.get(f"{body['userName']}/{body['kernelSlug']}")
            found = {"metadata": {}, "blob": blob}
            self._json(call, found if blob else {"code": 404, "message": "Not found"}, 200 if blob else 404)
        elif body[_competition_key(name)] not in self.kaggle.competitions:
            self._json(call, {"code": 404, "message": "Not found"}, 404)
        elif name == "DownloadDataFiles":
            # Another name of the same machine: to a client, the storage is another host.
            port = self.kaggle.url.rpartition(":")[2]
            self._head(call, 302, {"Location": f"http://localhost:{port}/bundle/archive.zip?{SIGNATURE}"}, 0)
        else:
            answer = self.kaggle.answers[name]
            self._json(call, answer(body) if callable(answer) else answer)

    def _record(self, name: str, body: dict[str, Any]) -> Call:
        self.kaggle.calls.append(Call(name, dict(self.headers), body))
        return self.kaggle.calls[-1]

    def _head(self, call: Call, status: int, headers: dict[str, str], length: int) -> None:
        call.status = status
        self.send_response(status)
        for name, value in {"Content-Length": str(length), "X-Kaggle-APIVersion": "99.0.0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _json(self, call: Call, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self._head(call, status, {"Content-Type": "application/json", **(headers or {})}, len(data))
        self.wfile.write(data)

    def _answer_storage(self) -> None:
        call = self._record("storage", {})
        fault = self.kaggle.fault("storage")
        if fault.status:
            self._head(call, fault.status, {"Content-Type": "application/xml", **fault.headers}, 0)
            return
        body, whole = self.kaggle.archive, len(self.kaggle.archive)
        headers = {"Content-Type": "application/zip", "Accept-Ranges": "bytes", "ETag": self.kaggle.tag}
        wanted = None if fault.ignores_range else self.headers.get("Range")
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            if int(first) >= whole:
                self._head(call, 416, {"Content-Range": f"bytes */{whole}"}, 0)
                return
            end = min(int(last or whole - 1), whole - 1)
            body = body[int(first) : end + 1]
            headers["Content-Range"] = f"bytes {first}-{end}/{whole}"
        self._head(call, 206 if wanted else 200, headers, len(body))
        self._send(call, body if fault.cut is None else body[: fault.cut])
        if fault.stall:
            self.kaggle.released.wait(self.timeout)

    def _send(self, call: Call, body: bytes) -> None:
        for start in range(0, len(body), 1 << 16):
            piece = body[start : start + (1 << 16)]
            call.sent += len(piece)  # first: whoever has read it may look immediately
            self.wfile.write(piece)
