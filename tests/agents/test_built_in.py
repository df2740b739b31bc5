"""Built-in agents and new ones work in a separate process that sees only the public files."""

import os
import subprocess
import threading
from collections.abc import Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from typing import ClassVar

import py7zr
import pytest

from mlebench.agents import Agent, load_agent
from mlebench.agents.baseline import seven_zip
from mlebench.agents.new_agent import new_agent
from mlebench.core.errors import PrerequisiteError
from mlebench.grade import grade_csv
from mlebench.registry import Competition

METHODS = {
    "copy": [{"id": py7zr.FILTER_COPY}],
    "deflate": [{"id": py7zr.FILTER_DEFLATE}],
    "bzip2": [{"id": py7zr.FILTER_BZIP2}],
    "lzma": [{"id": py7zr.FILTER_LZMA, "preset": 1}],
    "lzma2": [{"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "what py7zr chooses": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA2, "preset": 7}],
}


def run(agent: Agent, public: Path, home: Path, **env: str) -> tuple[Path, str]:
    """Run an agent as a sandbox would, with only its own variables; returns its submission and its log."""
    for folder in ("agent", "submission", "logs", "code"):
        (home / folder).mkdir(parents=True)
    (home / "instructions.txt").write_text("Do your best.\n")
    agent.copy_to(home / "agent")
    variables = {f"{name.upper()}_DIR": str(home / name) for name in ("agent", "submission", "logs", "code")}
    variables |= {"DATA_DIR": str(public), "INSTRUCTIONS": str(home / "instructions.txt"), "SEED": "1"}
    variables |= {"SAMPLE_SUBMISSION": str(public / "sample_submission.csv")}
    done = subprocess.run(
        agent.command(str(home / "agent")),
        cwd=home / "agent",
        env={"PATH": os.environ["PATH"], "TIME_LIMIT_SECS": "60", **variables, **agent.environment({}), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return home / "submission/submission.csv", done.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """An agent as `mlebench agents new` makes it."""
    return load_agent(str(new_agent("fresh", tmp_path_factory.mktemp("agents"))))


def test_the_submission_of_dummy_is_valid_and_graded(titanic: Competition, tmp_path: Path) -> None:
    submission, log = run(load_agent("dummy"), titanic.public_dir, tmp_path)
    assert "sample_submission.csv" in log
    assert grade_csv(submission, titanic).valid_submission


def test_command_runs_any_program_in_bash(titanic: Competition, tmp_path: Path) -> None:
    agent = load_agent("command", 'cp "$DATA_DIR"/sample_*.csv "$SUBMISSION_DIR/submission.csv" && echo "in $PWD"')
    submission, log = run(agent, titanic.public_dir, tmp_path)
    assert submission.read_bytes() == titanic.sample_submission.read_bytes()
    assert log == f"in {tmp_path / 'agent'}\n"


class Validator(BaseHTTPRequestHandler):
    """Answers as ours does, and keeps what it was sent."""

    sent: ClassVar[list[bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        _, part = message_from_bytes(head + body).walk()
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        assert self.path == "/validate"
        assert part.get_param("name", header="Content-Disposition") == "file"
        self.sent.append(content)
        verdict = b'{"is_valid": %b, "result": "Looked at."}' % (b"false" if b"wrong" in content else b"true")
        self.send_response(200)
        self.send_header("Content-Length", str(len(verdict)))
        self.end_headers()
        self.wfile.write(verdict)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def validator() -> Iterator[str]:
    Validator.sent = []
    with HTTPServer(("127.0.0.1", 0), Validator) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("ending", ["", "/", "/validate"])
def test_a_new_agent_validates_what_it_submits(
    titanic: Competition, fresh: Agent, validator: str, ending: str, tmp_path: Path
) -> None:
    submission, log = run(fresh, titanic.public_dir, tmp_path, VALIDATOR_URL=f"{validator}{ending}")
    assert Validator.sent == [submission.read_bytes()]
    assert "Looked at." in log
    assert [path.name for path in submission.parent.iterdir()] == ["submission.csv"]


def test_a_new_agent_submits_nothing_that_is_invalid(fresh: Agent, validator: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/description.md").write_text("A task.")
    (tmp_path / "data/sample_submission.csv").write_text("wrong")
    submission, _ = run(fresh, tmp_path / "data", tmp_path / "home", VALIDATOR_URL=validator)
    assert not submission.exists()


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.0 500 Oh\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nno JSON"])
def test_a_new_agent_submits_even_if_the_validator_is_down(
    titanic: Competition, fresh: Agent, answer: bytes | None, tmp_path: Path
) -> None:
    class Broken(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 20)
            self.request.sendall(answer or b"")

    with TCPServer(("127.0.0.1", 0), Broken) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        if answer is None:
            server.server_close()
        else:
            thread.start()
        submission, log = run(fresh, titanic.public_dir, tmp_path, VALIDATOR_URL=address)
        if answer is not None:
            server.shutdown()
            thread.join()
    assert submission.read_bytes() == titanic.sample_submission.read_bytes()
    assert "does not answer" in log


def test_a_new_agent_does_not_overwrite_another(tmp_path: Path) -> None:
    folder = new_agent("my-agent_2", tmp_path / "deep/er")
    (folder / "agent.py").write_text("my work")
    with pytest.raises(PrerequisiteError, match="already exists"):
        new_agent("my-agent_2", tmp_path / "deep/er")
    assert (folder / "agent.py").read_text() == "my work"
    for name in ("dummy", "../x", "a b", "", "-x", "a/b"):
        with pytest.raises(PrerequisiteError, match="name"):
            new_agent(name, tmp_path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("packed_header", [True, False])
@pytest.mark.parametrize("content", [b"id,x\n1,0.5\n", bytes(range(256)) * 3000], ids=["small", "large"])
def test_7z_is_read_with_the_standard_library(method: str, packed_header: bool, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sample.csv.7z"
    with py7zr.SevenZipFile(path, "w", filters=METHODS[method]) as archive:
        archive.set_encoded_header_mode(packed_header)
        archive.writestr(content, "folder/sämple.csv")
    assert seven_zip.read_only_member(path) == content

    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(Exception, match=r"damaged|[Cc]orrupt|rror|Invalid"):
        seven_zip.read_only_member(path)


def test_7z_of_other_kinds_is_refused(tmp_path: Path) -> None:
    two, packed = tmp_path / "two.7z", tmp_path / "ppmd.7z"
    with py7zr.SevenZipFile(two, "w") as archive:
        archive.writestr(b"a", "a.csv")
        archive.writestr(b"b", "b.csv")
    with pytest.raises(ValueError, match="2 files; one is supported"):
        seven_zip.read_only_member(two)
    with py7zr.SevenZipFile(packed, "w", filters=[{"id": py7zr.FILTER_ZSTD}]) as archive:
        archive.writestr(b"a" * 100, "a.csv")
    with pytest.raises(ValueError, match="not supported"):
        seven_zip.read_only_member(packed)
    (tmp_path / "no.7z").write_bytes(b"PK" + bytes(100))
    with pytest.raises(ValueError, match="not a 7z archive"):
        seven_zip.read_only_member(tmp_path / "no.7z")
