"""Wheels made by hand, and an index on the loopback that serves them, well or badly."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

JSON = "application/vnd.pypi.simple.v1+json"


def make_wheel(
    folder: Path, name: str, version: str = "1.0", code: str | None = None, *, needs: Sequence[str] = ()
) -> Path:
    """A package of one module, which has a `VERSION` unless there is other code, and a program of its name."""
    whole = f"{name}-{version}"
    needed = "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {
        f"{name}.py": f"VERSION = {version!r}\n\n\ndef main():\n    print('this is {name}', VERSION)\n"
        if code is None
        else code,
        f"{whole}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{whole}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{whole}.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    files[f"{whole}.dist-info/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{whole}.dist-info/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{whole}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return path


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    act: Callable[[BaseHTTPRequestHandler], None] | None = None  # instead of all that


@dataclass
class Index:
    """An index of wheels: an honest one, except for what `replies` has for some paths."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    is_html: bool = False

    def add(self, wheel: Path, uploaded: str | None = None, **facts: Any) -> dict[str, Any]:
        """Offer a wheel; the facts replace what is true of it."""
        content = wheel.read_bytes()
        entry = {
            "filename": wheel.name,
            "url": f"../../wheels/{wheel.name}",
            "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
            "size": len(content),
            **({"upload-time": uploaded} if uploaded else {}),
            **facts,
        }
        self.files[f"/wheels/{wheel.name}"] = content
        self.entries.setdefault(wheel.name.split("-")[0].replace("_", "-"), []).append(entry)
        return entry

    def reply(self, path: str) -> Reply:
        if path in self.replies:
            return self.replies[path]
        if path in self.files:
            return Reply(body=self.files[path])
        name = path.removeprefix("/simple/").strip("/")
        if name not in self.entries:
            return Reply(404)
        files = self.entries[name]
        if self.is_html:
            lines = (
                f'<a href="{file["url"]}#sha256={file["hashes"]["sha256"]}">{file["filename"]}</a>' for file in files
            )
            return Reply(body="<br>".join(lines).encode(), headers={"content-type": "text/html; charset=utf-8"})
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
        return Reply(body=json.dumps(page).encode(), headers={"content-type": JSON})


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            reply = index.reply(self.path)
            if reply.act:
                reply.act(self)
                return
            self.send_response(reply.status)
            for name, value in {"content-length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    index.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
