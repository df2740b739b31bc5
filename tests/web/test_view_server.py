"""`mlebench view`: what it serves, and what it must not."""

import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from support.web_fixtures import Serving


def get(address: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    """A request whose path is sent verbatim."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        connection.putrequest("GET", path, skip_host=bool(headers and "Host" in headers))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_pages_their_data_and_what_they_need(served: str) -> None:
    for path, kind in {
        "/index.html": "text/html",
        "/index.json": "application/json",
        "/standings/twins.html": "text/html",
        "/grid.html": "text/html",
        "/compare.html": "text/html",
        "/compare/real/one/two.html": "text/html",
        "/competitions.html": "text/html",
        "/competition/random-acts-of-pizza.html": "text/html",
        "/groups.html": "text/html",
        "/assets/style.css": "text/css",
        "/assets/script.js": "text/javascript",
    }.items():
        status, headers, body = get(served, path)
        assert (status, headers["content-type"].partition(";")[0]) == (200, kind), path
        assert body
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
    assert get(served, "/")[0] in (302, 307)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil", "", "169.254.1.1"]
)
def test_other_names_are_refused(served: str, host: str) -> None:
    for path in ("/index.html", "/index.json", "/assets/script.js"):
        status, _, body = get(served, path, {"Host": host})
        assert status == 421
        assert b"random-acts" not in body


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:1", "[::1]:80", "LOCALHOST:5"])
def test_our_own_names_are_served_even_through_a_tunnel(served: str, host: str) -> None:
    assert get(served, "/index.html", {"Host": host})[0] == 200


def test_two_names_or_none_are_refused(served: str) -> None:
    parts = urlsplit(served)
    for names in ("", "Host: localhost\r\nHost: evil.example\r\n"):
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=120) as raw:
            raw.sendall(f"GET /index.html HTTP/1.1\r\n{names}Connection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda raw=raw: raw.recv(65536), b""))
        assert answer.split(b" ", 2)[1] in (b"400", b"421")


def test_only_reading(served: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert httpx2.request(method, f"{served}/index.html", trust_env=False, timeout=120).status_code == 405


def test_a_page_that_has_not_changed_is_not_sent_again(served: str) -> None:
    _, headers, _ = get(served, "/assets/style.css")
    assert get(served, "/assets/style.css", {"If-None-Match": headers["etag"]})[0] == 304


@pytest.fixture
def run_folder(own_runs: Path) -> Path:
    (folder, *_) = sorted(own_runs.glob("*one/*/"))
    for name in ("submission", "logs", "code"):
        (folder / name).mkdir()
    (folder / "code" / "a b.py").write_text("print(1)\n")
    (folder / "logs" / "page.html").write_text("<script>alert(1)</script>")
    return folder


def test_files_of_runs_are_plain_text(own_runs: Path, run_folder: Path) -> None:
    where = f"/files/{run_folder.parent.name}/{run_folder.name}"
    with Serving(own_runs) as address:
        status, headers, body = get(address, f"{where}/code/a%20b.py")
        assert (status, body) == (200, b"print(1)\n")
        status, headers, body = get(address, f"{where}/logs/page.html")
        assert status == 200
        assert headers["content-type"] == "text/plain; charset=utf-8"
        assert headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in headers["content-security-policy"]


def test_nothing_else_can_be_read(own_runs: Path, run_folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    (own_runs / "outside.txt").write_text("SECRET")
    (run_folder / "code" / "link").symlink_to(secret)
    (run_folder / "code" / "folder").symlink_to(tmp_path)
    (run_folder / "code" / "self").symlink_to(run_folder / "code")
    os.mkfifo(run_folder / "code" / "pipe")
    group, run = run_folder.parent.name, run_folder.name
    where = f"/files/{group}/{run}"
    attempts = [
        f"{where}/code/link",
        f"{where}/code/folder/secret.txt",
        f"{where}/code/self/a%20b.py",
        f"{where}/code/pipe",
        f"{where}/code",
        f"{where}/",
        f"{where}/../../outside.txt",
        f"{where}/..%2f..%2foutside.txt",
        f"{where}/%2e%2e/%2e%2e/outside.txt",
        f"{where}//etc/passwd",
        f"{where}/%2fetc%2fpasswd",
        f"{where}/code/%00",
        f"/files/{group}/../outside.txt/x",
        f"/files/../{own_runs.name}/outside.txt",
        f"/files/{group}/nothing/code/a%20b.py",
        "/files/x/y/z",
        "/files//",
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/../../etc/passwd.html",
        f"/group/..%2f{group}.html",
        "/competition/..%2f..%2fx.html",
        "/run/../../x.json",
        "//etc/passwd",
    ]
    with Serving(own_runs) as address:
        for path in attempts:
            status, _, body = get(address, path)
            assert status == 404, path
            assert b"SECRET" not in body, path


def test_a_new_run_appears_with_the_next_request(own_runs: Path) -> None:
    import json

    with Serving(own_runs) as address:
        before = httpx2.get(f"{address}/index.json", trust_env=False, timeout=120).json()
        for path in own_runs.glob("*three/*/run.json"):
            record = json.loads(path.read_bytes())
            done = json.loads(next(own_runs.glob(f"*one/{record['competition']}_*/run.json")).read_bytes())
            path.write_text(json.dumps(done | {"run_id": record["run_id"], "seed": 0}))
        after = httpx2.get(f"{address}/index.json", trust_env=False, timeout=120).json()
    (entry,) = (entry for entry in before["entries"] if entry["name"] == "three")
    assert entry["going_on"] == entry["planned"] == 1
    (entry,) = (entry for entry in after["entries"] if entry["name"] == "three")
    assert entry["going_on"] == entry["planned"] == 0


def test_the_command_says_where_and_ends_with_a_signal(runs: Path) -> None:
    command = [sys.executable, "-P", "-m", "mlebench", "view", str(runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert httpx2.get(f"{address}index.html", trust_env=False, timeout=120).status_code == 200
        process.terminate()
        assert process.wait(120) is not None


def test_a_missing_page_is_a_page_for_readers_and_a_line_for_programs(served: str) -> None:
    for path in ("/x.html", "/run/a/b/c.html", "/x", "/files/a/b/c"):
        answer = httpx2.get(f"{served}{path}", headers={"Accept": "text/html"}, trust_env=False, timeout=120)
        assert answer.status_code == 404
        assert 'href="/index.html">standings</a>' in answer.text
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        answer = httpx2.get(f"{served}{path}", headers={"Accept": "*/*"}, trust_env=False, timeout=120)
        assert (answer.status_code, answer.text) == (404, "There is no such page.\n")
