"""The server as its clients see it: ML-Master, MLEvolve, the script in a sandbox, and attackers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.waiting import wait_until

from mlebench.registry import Competition, Registry

SCRIPT = Path(__file__).parents[2] / "environment" / "validate_submission.sh"
GRADERS = {
    "hangs": "def grade(submission, answers):\n    while True: pass\n",
    "eats-memory": "def grade(submission, answers):\n    return sum(bytearray(1 << 36))\n",
    "dies": "import os\ndef grade(submission, answers):\n    os._exit(1)\n",
    "fails": "def grade(submission, answers):\n    open('/home/somebody/secret')\n",
}
# What `mlebench validate --serve` does, with limits that a test can wait for and that a busy machine keeps.
PROGRAM = """
import sys
from pathlib import Path
from mlebench.registry import Registry
from mlebench.core.serve import ServerLimits, listening
from mlebench.validate.isolated_check import CheckLimits
from mlebench.validate.server import Validator, ValidatorLimits, serve
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
registry = Registry(sys.argv[1])
limits = ValidatorLimits(
    body=100_000, seconds=8, server=ServerLimits(8, header_seconds=8), check=CheckLimits(seconds=10, memory=2 << 30)
)
validator = Validator(registry.list_competition_ids(), registry.get_competition, limits=limits)
with listening("127.0.0.1", [0], None) as sockets:
    serve(validator, sockets)
"""

Start = Callable[..., "Server"]


class Server:
    """A server in a separate process, and where it listens."""

    def __init__(self, command: list[str], environment: dict[str, str], listeners: int):
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
        self.urls: list[str] = []
        self._listeners = listeners

    def wait(self) -> None:
        """Wait until it listens."""
        assert self.process.stderr
        lines = [self.process.stderr.readline() for _ in range(self._listeners)]
        self.urls = re.findall(r"listening on (http://\S+)", "".join(lines))
        assert len(re.findall("listening on", "".join(lines))) == self._listeners, lines

    @property
    def url(self) -> str:
        return self.urls[0]

    def post(self, content: bytes, id: str | None = None, **more: Any) -> httpx2.Response:
        headers = {"exp-id": id} if id else {}
        return httpx2.post(
            f"{self.url}/validate", files={"file": ("submission.csv", content)}, headers=headers, timeout=60, **more
        )

    def stop(self) -> str:
        """End it; returns what it said after its first lines."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


@pytest.fixture(scope="module")
def start(titanic: Competition, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    started: list[Server] = []

    def start(*options: object, program: str | None = None, listeners: int = 1, **environment: str) -> Server:
        command = [sys.executable, *(["-c", program] if program else ["-m", "mlebench", "validate", "--serve"])]
        server = Server([*command, *map(str, options)], environment, listeners)
        started.append(server)
        server.wait()
        return server

    yield start
    for server in started:
        server.process.kill()  # unless it has ended
        server.process.wait()
        if server.process.stderr:
            server.process.stderr.close()


@pytest.fixture(scope="module")
def server(start: Start, titanic: Competition) -> Server:
    """For all competitions of a data directory, on two ports."""
    return start("--data-dir", titanic.paths.data_dir, "--port", 0, "--port", 0, listeners=2)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the bounded server puts temporary files."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def misbehaving(tmp_path_factory: pytest.TempPathFactory, titanic: Competition) -> tuple[Path, Path]:
    """Competitions whose graders misbehave: their data, and their folders."""
    source, root = titanic.folder, tmp_path_factory.mktemp("competitions")
    data = tmp_path_factory.mktemp("data")
    for id, grader in GRADERS.items():
        (root / id).mkdir()
        for name in ("config.yaml", "description.md", "leaderboard.csv"):
            text = (source / name).read_text(encoding="utf-8")
            (root / id / name).write_text(text.replace(titanic.id, id), encoding="utf-8")
        (root / id / "grade.py").write_text(grader, encoding="utf-8")
        where = Registry(data).get_competition(titanic.id).paths
        place = where.data_dir / id / where.public.relative_to(where.root)
        place.mkdir(parents=True)
        (place / "sample_submission.csv").write_bytes(titanic.sample_submission.read_bytes())
    (data / titanic.id).symlink_to(titanic.paths.root)
    return data, root


@pytest.fixture(scope="module")
def bounded(start: Start, scratch: Path, misbehaving: tuple[Path, Path]) -> Server:
    """With short limits."""
    data, root = misbehaving
    return start(data, program=PROGRAM, MLEBENCH_COMPETITION_PATH=str(root), TMPDIR=str(scratch))


@pytest.fixture(scope="module")
def sample(titanic: Competition) -> bytes:
    return titanic.sample_submission.read_bytes()


def test_health_is_answered_on_every_port(server: Server) -> None:
    assert len(set(server.urls)) == 2
    for url in server.urls:
        answer = httpx2.get(f"{url}/health", timeout=60)
        assert (answer.status_code, answer.json()) == (200, {"status": "running"})


def test_ml_master_and_mlevolve_get_what_they_expect(server: Server, sample: bytes, titanic: Competition) -> None:
    for url in server.urls:
        with titanic.sample_submission.open("rb") as file:
            answer = httpx2.post(f"{url}/validate", files={"file": file}, headers={"exp-id": titanic.id}, timeout=60)
        assert (answer.status_code, answer.json()) == (200, {"is_valid": True, "result": "Submission is valid."})
    answer = server.post(sample.replace(b"Transported", b"Transport"), titanic.id)
    assert (answer.status_code, answer.json()["is_valid"]) == (200, False)
    assert "missing the following columns: Transported" in answer.json()["result"]


def test_the_competition_may_be_in_the_query_or_the_environment(
    start: Start, server: Server, sample: bytes, titanic: Competition
) -> None:
    assert server.post(sample, params={"exp-id": titanic.id}).json()["is_valid"] is True
    other = start("--data-dir", titanic.paths.data_dir, "--port", 0, COMPETITION_ID=titanic.id)
    assert other.post(sample).json()["is_valid"] is True
    assert other.post(sample, "aerial-cactus-identification").status_code == 500  # the header takes precedence


def test_names_of_files_are_ignored(server: Server, sample: bytes, titanic: Competition) -> None:
    for name in ("../../etc/passwd", "x.exe", "\u202e.csv", "a" * 1000):
        answer = httpx2.post(
            f"{server.url}/validate", files={"file": (name, sample)}, headers={"exp-id": titanic.id}, timeout=60
        )
        assert answer.json()["is_valid"] is True


def test_a_chunked_form(server: Server, sample: bytes, titanic: Competition) -> None:
    """As curl sends it with `Expect`, and as others do in chunks, with further fields before the file."""
    head = b'--x\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n'
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="s.csv"\r\n\r\n' + sample + b"\r\n--x--\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (head, part)) + b"0\r\n\r\n"
    header = (
        "POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
        f"exp-id: {titanic.id}\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    with _connected(server) as client:
        client.sendall(header.encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(body)
        answer = _until_closed(client)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["is_valid"] is True


@pytest.mark.parametrize(
    "id", ["no-such", "../spaceship-titanic", "/etc", ".", "spaceship-titanic/", "%2e%2e", "x" * 999]
)
def test_an_unknown_competition_is_refused(server: Server, sample: bytes, id: str) -> None:
    _is_fault(server.post(sample, id), 400)


def test_every_error_has_error_and_details(server: Server, sample: bytes, titanic: Competition) -> None:
    validate, header = f"{server.url}/validate", {"exp-id": titanic.id}
    _is_fault(server.post(sample), 400)
    with httpx2.Client(timeout=60) as client:
        _is_fault(client.post(validate, headers=header), 400)
        _is_fault(client.post(validate, headers=header, content=sample), 400)
        _is_fault(client.post(validate, headers=header, data={"file": "text"}), 400)
        _is_fault(client.post(validate, headers=header, files={"other": sample}), 400)
        _is_fault(client.post(validate, headers=header, files=[("file", sample), ("file", sample)]), 400)
        _is_fault(
            client.post(validate, headers=header | {"Content-Type": "multipart/form-data; boundary=x"}, content=b"?"),
            400,
        )
        _is_fault(client.get(validate), 405)
        _is_fault(client.get(f"{server.url}/"), 404)


def test_missing_data_gives_no_verdict(server: Server, sample: bytes, titanic: Competition) -> None:
    answer = _is_fault(server.post(sample, "random-acts-of-pizza"), 500)
    assert str(titanic.paths.data_dir) not in answer["details"]


def test_files_that_are_too_large_are_refused(bounded: Server, titanic: Competition) -> None:
    _is_fault(bounded.post(b"x" * 100_000, titanic.id), 413)


@pytest.mark.parametrize("id", GRADERS)
def test_a_misbehaving_check_affects_no_other(bounded: Server, sample: bytes, titanic: Competition, id: str) -> None:
    answer = _is_fault(bounded.post(sample, id), 500)
    assert "/home" not in answer["details"]
    assert ("fault of the benchmark" in answer["details"]) is (id == "fails")
    assert bounded.post(sample, titanic.id).json()["is_valid"] is True


def test_many_at_once_are_all_answered(server: Server, sample: bytes, titanic: Competition) -> None:
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda _: server.post(sample, titanic.id), range(8)))
    assert all(answer.json()["is_valid"] for answer in answers)


def test_clients_that_say_nothing_or_say_it_slowly_are_cut(
    bounded: Server, sample: bytes, titanic: Competition
) -> None:
    with _connected(bounded) as silent, _connected(bounded) as slow, _connected(bounded) as half:
        slow.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\n")
        half.sendall(
            b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        )
        assert _until_closed(silent) == _until_closed(slow) == b""
        assert _until_closed(half).startswith(b"HTTP/1.1 408")
    assert bounded.post(sample, titanic.id).json()["is_valid"] is True


def test_connections_beyond_the_limit_are_cut(bounded: Server) -> None:
    others = [_connected(bounded) for _ in range(12)]
    try:
        assert [_until_closed(client) for client in others] == [b""] * 12
    finally:
        for client in others:
            client.close()
    assert httpx2.get(f"{bounded.url}/health", timeout=60).status_code == 200


def test_uploads_leave_nothing_behind(bounded: Server, scratch: Path, sample: bytes, titanic: Competition) -> None:
    for id in (titanic.id, "dies", "no-such"):
        bounded.post(sample * 20, id)
        assert list(scratch.rglob("*")) == []


def test_on_a_unix_socket_for_one_competition_only(
    start: Start, titanic: Competition, sample: bytes, tmp_path: Path
) -> None:
    door = tmp_path / "door"
    options = ["--public", titanic.public_dir, "--competition-id", titanic.id, "--unix", door]
    server = start(*options)
    assert server.urls == []
    with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(door)), base_url="http://door", timeout=60) as client:
        assert client.get("/health").json() == {"status": "running"}
        for content in (sample, b"x"):  # no name is different from the others: a run may be obfuscated
            for id in (titanic.id, "a-name-of-its-own", "", "leaf-classification"):
                answers = [
                    client.post("/validate", files={"file": content}, headers={"exp-id": id}),
                    client.post(f"/validate?exp-id={id}", files={"file": content}),
                ]
                assert {answer.status_code for answer in answers} == {200}
                assert {answer.json()["is_valid"] for answer in answers} == {content == sample}
    server.process.send_signal(signal.SIGKILL)
    server.process.communicate()
    assert door.is_socket()  # it could not clean up; the next one does
    server = start(*options)
    assert door.is_socket()
    server.stop()
    assert server.process.returncode == 0
    assert not door.exists()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_server(
    start: Start, misbehaving: tuple[Path, Path], sample: bytes, end: signal.Signals
) -> None:
    data, root = misbehaving
    server = start("--data-dir", data, "--port", 0, MLEBENCH_COMPETITION_PATH=str(root))
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(server.post, sample, "hangs")
        processes = wait_until(
            lambda: [child for pid in _children(server.process.pid) for child in _children(pid)], "a check has begun"
        )
        processes += _children(server.process.pid)
        server.process.send_signal(end)
        server.process.communicate()
        asked.exception()
    wait_until(lambda: not any(map(_runs, processes)), "all processes of the server have ended")


def test_the_process_that_stands_by_is_replaced_when_it_dies(start: Start, titanic: Competition, sample: bytes) -> None:
    server = start("--data-dir", titanic.paths.data_dir, "--port", 0)
    assert server.post(sample, titanic.id).json()["is_valid"] is True
    (standing_by,) = _children(server.process.pid)
    os.kill(standing_by, signal.SIGKILL)
    wait_until(lambda: not _runs(standing_by), "the killed process has ended")
    assert server.post(sample, titanic.id).json()["is_valid"] is True


def test_a_taken_port_is_reported_in_one_line(server: Server, titanic: Competition) -> None:
    port = server.url.rpartition(":")[2]
    command = [sys.executable, "-m", "mlebench", "validate", "--serve", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: cannot listen on")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("tool", ["curl", "python3"])
def test_the_script_in_a_sandbox(server: Server, start: Start, titanic: Competition, tmp_path: Path, tool: str) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    program = sys.executable if tool == "python3" else "/usr/bin/curl"
    if not Path(program).exists():
        pytest.skip("there is no curl on this machine")
    (tools / tool).symlink_to(program)
    one = start("--public", titanic.public_dir, "--competition-id", titanic.id, "--port", 0)

    def run(*arguments: object, url: str = f"{one.url}/validate") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tools), "VALIDATOR_URL": url}
        command = ["/bin/sh", str(SCRIPT), *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    odd = tmp_path / 'odd "name"; é.csv'
    odd.write_bytes(titanic.sample_submission.read_bytes())
    done = run(odd)
    assert (done.returncode, done.stdout) == (0, "Submission is valid.\n"), done.stderr
    done = run(titanic.public_dir / "test.csv")
    assert done.returncode == 1
    assert done.stdout.startswith("Submission invalid! ")
    assert run().returncode == run(tmp_path / "none.csv").returncode == 2
    done = run(odd, url="http://127.0.0.1:1/validate")
    assert (done.returncode, done.stdout) == (2, "")
    assert "validator" in done.stderr
    done = run(odd, url=f"{server.url}/validate")  # it has not been told which competition
    assert (done.returncode, done.stdout) == (2, "")
    assert "exp-id" in done.stderr


def _is_fault(answer: httpx2.Response, status: int) -> dict[str, str]:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() == {"error", "details"}
    assert all(isinstance(text, str) and text for text in body.values())
    return body


def _connected(server: Server) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def _until_closed(client: socket.socket) -> bytes:
    content = b""
    try:
        while part := client.recv(1 << 16):
            content += part
    except ConnectionResetError:
        pass
    return content


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
