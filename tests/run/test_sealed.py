"""A hostile agent learns nothing, harms nothing outside its folders, and is graded by what it submitted."""

import json
import os
import re
import shlex
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from support.kernel_keys import added_to_user_keyring
from support.sandboxes import ALL, ISOLATING, make_task, processes, require, run_task, sandbox_params
from support.traps import AGENT, Trap, addresses, listening, run_as, wait

from mlebench.core.untrusted import plain
from mlebench.registry import Competition
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.base import Bind
from mlebench.sandbox.session import SupervisorClient

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOSYS", "EXDEV", "ESRCH", "EINVAL", "ENOSPC", "ENXIO"}
USERS = [None, 65534] if os.geteuid() == 0 else [None]  # only root can become another user
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts"}


@pytest.fixture
def trap(tmp_path: Path, titanic: Competition) -> Iterator[Trap]:
    trap = Trap.set(tmp_path, titanic)
    with added_to_user_keyring(trap.canaries["key"].encode()) as numbers:
        trap.wanted["keys"] = numbers
        yield trap


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_an_agent_that_searches_finds_nothing_and_changes_nothing(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before = trap.state()
    with listening(trap) as servers:
        caught = trap.run("search", sandbox=sandbox, **servers)
    assert caught.run.record.ended == "finished", caught.run.paths.log.read_text()
    findings = caught.findings
    assert findings["found"] == []
    assert findings["files"] > 10  # it did look
    assert [name for name in findings["names"] if not name.startswith("/run/mlebench")] == []
    _assert_no_way_out(findings)
    if sandbox != "bubblewrap":
        findings["keys"]["/proc/key-users"] = "nothing"  # engines do not hide how many keys each user has
    _assert_no_keys(findings["keys"])
    assert trap.state() == before
    assert caught.leftovers() == []


def _assert_no_way_out(findings: dict) -> None:
    network = findings["network"]
    assert network.pop("unix") == "/run/mlebench/validator.sock"
    assert {network.pop("vsock 1"), network.pop("vsock 2")} <= {"EPERM", "none"}  # no namespace stops these
    assert "done" not in network.values(), network
    places = findings["places"]
    assert places.pop("written") == []
    assert {Path(name).name for name in places.pop("devices") if not name.startswith("/dev/pts/")} <= HARMLESS
    assert "done" not in places.values(), places
    powers = findings["powers"]
    assert powers.pop("uid") != 0
    assert powers.pop("capabilities") == [0]
    assert powers.pop("no new privileges") == "1"
    assert powers.pop("filters") == ["2"]  # every process has a system call filter, the first one too
    assert powers.pop("session")
    assert powers.pop("processes") < 10
    assert set(powers.values()) <= REFUSED, powers


def _assert_no_keys(attempts: dict[str, str]) -> None:
    """No list of keys can be read, and every system call for them is refused."""
    assert (attempts.pop("/proc/keys"), attempts.pop("/proc/key-users")) == ("nothing", "nothing")
    assert set(attempts.values()) == {"EPERM"}, attempts


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_no_process_is_a_way_around_the_system_call_filter(tmp_path: Path, sandbox: str, user: int | None) -> None:
    """Each has the filter. The first one, which is not the agent's own, cannot be traced."""
    require(sandbox)
    if user is not None and sandbox != "bubblewrap":
        pytest.skip("engines are used as root here")
    program = shlex.quote((AGENT / "forbidden_calls.py").read_text())
    outcome, log = run_as(user, tmp_path, f"python3 -c {program}; true", sandbox=sandbox)
    assert outcome == "finished", log
    processes = json.loads(log)
    assert {process.pop("filter") for process in processes.values()} == {"2"}, log
    assert processes.pop("1") == {"traced": "EPERM"}
    assert sorted(process.pop("traced") for process in processes.values()) == ["done", "done", "itself"], log
    for process in filter(None, processes.values()):  # this program, the shell that started it, and a child
        assert process in ({"AF_VSOCK": "EPERM", "io_uring": refusal} for refusal in ("ENOSYS", "EPERM")), log


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_what_is_hidden_stays_hidden_below_what_is_shown(tmp_path: Path, sandbox: str) -> None:
    """As with a Python installation that holds the benchmark and its data, and that an agent's venv was made from."""
    require(sandbox)
    prefix = tmp_path / "prefix"
    for name in (
        "lib/package/grade.py",
        "share/data/id/prepared/private/test.csv",
        "lib/agents/venv/tool.py",
        "bin/mlebench",
    ):
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(f"content of {name}")
    (prefix / "lib" / "package").chmod(0o777)
    (tmp_path / "alias").symlink_to(prefix / "share" / "data")
    shown = (
        Bind(prefix, str(prefix)),
        Bind(prefix / "lib" / "agents" / "venv", str(prefix / "lib" / "agents" / "venv")),
    )
    hidden = (prefix / "lib" / "package", tmp_path / "alias", prefix / "lib" / "agents", prefix / "bin" / "mlebench")
    task = make_task(tmp_path, f"cd {prefix}; grep -r content .; touch lib/package/x; true", binds=shown, hidden=hidden)
    outcome, log = run_task(sandbox, task)
    assert outcome.ended == "finished", outcome
    assert [line for line in log.splitlines() if "content" in line] == [
        "./lib/agents/venv/tool.py:content of lib/agents/venv/tool.py"
    ]
    assert "touch: " in log


def test_the_system_is_shown_without_the_benchmark_when_that_is_installed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/usr holds programs that a sandbox shows; here, also what it must not."""
    require("bubblewrap")
    monkeypatch.setattr("mlebench.core.paths.module_dir", lambda: Path("/usr/share"))
    outcome, log = run_task("bubblewrap", make_task(tmp_path, "ls /usr/share; [ -e /usr/bin/env ] && echo the rest"))
    assert (outcome.ended, log) == ("finished", "the rest\n")
    # The validator's sandbox shows it by name.
    own = make_task(tmp_path, "ls /usr/share | wc -l", binds=(Bind(Path("/usr/share"), "/usr/share"),))
    assert int(run_task("bubblewrap", own)[1]) > 3


# What is submitted: whether it counts as a submission, and what grading says.
HANDED_IN = {
    "link": ("none", "missing"),
    "relative link": ("none", "missing"),
    "link to data": ("none", "missing"),
    "pipe": ("none", "missing"),
    "socket": ("none", "missing"),
    "folder": ("none", "missing"),
    "sparse": ("none", "missing"),
    "folder is a link": ("none", "missing"),
    "folder is a file": ("none", "missing"),
    "closed": ("present", "graded"),
    "deep": ("present", "graded"),
    "changing": ("present", None),
    "exit code": ("present", "graded"),
}
ENDED = {"exit code": "agent_error", "deep": "over_disk"}
PLANTED = {"absolute", "relative", "folder", "root", "shadow", "itself", "process", "pipe", "socket", "sparse"}


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_planted_links_are_not_followed_and_grading_sees_what_was_submitted(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before = trap.state()
    kinds = list(HANDED_IN)
    options = ("--seeds", str(len(kinds)), "--workers", "3")
    caught = trap.run("plant", *options, sandbox=sandbox, kinds=kinds, pause=1.5)
    runs = list(caught.group.runs())
    for kind, run in zip(kinds, runs, strict=True):
        record, log = run.record, run.paths.log.read_text()
        submission, status = HANDED_IN[kind]
        assert record.ended == ENDED.get(kind, "finished"), (kind, record.detail, log)
        assert len(record.attempts) == 1, kind
        assert record.report is not None
        assert (record.submission, record.report.status) == (submission, status or record.report.status), kind
        assert {item.name for item in record.conditions.collected.left_out} >= PLANTED, kind
        assert (run.paths.logs / "closed" / "inside").read_text() == "kept"
    _assert_collected_is_ours(caught.group.paths.root)
    assert trap.state() == before
    assert caught.leftovers() == []


def _assert_collected_is_ours(root: Path) -> None:
    secrets = 0
    for where, folders, names in os.walk(root):
        for path in (Path(where, name) for name in [*folders, *names]):
            status = path.lstat()
            assert status.st_uid == os.geteuid(), path
            assert not status.st_mode & 0o6000, path
            assert stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode), path
            if path.is_file() and status.st_size < 1 << 20:
                secrets += b"canary-" in path.read_bytes()
    assert secrets == 0


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_an_obfuscated_run_does_not_reveal_its_competition(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    trap.canaries["slug"] = trap.competition.id
    ids = [id.encode().hex() for id in (trap.competition.id, "leaf-classification", "task-12345678")]
    caught = trap.run("search", "--obfuscate", sandbox=sandbox, ids=ids)
    assert caught.run.record.ended == "finished", caught.run.paths.log.read_text()
    # A file of the data may say where it is from; what the benchmark adds does not.
    assert [item for item in caught.findings["found"] if not item["where"].startswith("/home/data/")] == []
    assert caught.findings["description"] == trap.competition.obfuscated_description
    assert len(set(caught.findings["answers"])) == 1, "the validator treats all names alike"
    assert caught.findings["answers"][0].startswith("200")
    assert caught.run.record.report is not None
    assert caught.run.record.report.status == "graded"


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_the_validator_reveals_nothing_and_survives(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    sample = trap.competition.sample_submission.read_bytes()
    bodies = {
        "empty": b"",
        "sample": sample,
        "other values": sample.replace(b"False", b"True"),
        "other column": sample.replace(b"Transported", b"Target"),
        "half": sample[: len(sample) // 2],
        "noise": bytes(range(256)) * 100,
        "archive": b"PK\x03\x04" + bytes(100),
        "path": str(trap.answers).encode(),
    }
    names = ["submission.csv", "../../../etc/passwd", str(trap.answers), "a" * 200, "x.zip", "x;y", "\u202e"]
    wanted = {"bodies": {name: body.hex() for name, body in bodies.items()}, "file names": names}
    before = trap.state()
    first = trap.run("knock", sandbox=sandbox, **wanted)
    assert first.run.record.ended == "finished", first.run.paths.log.read_text()
    findings = first.findings
    assert findings["again"].startswith("200"), findings
    assert len(set(findings["verdicts"].values())) == 1, findings["verdicts"]  # a name changes nothing
    assert trap.canaries["answers"] not in json.dumps(findings)
    assert "root:x:0" not in json.dumps(findings)
    assert first.run.record.seconds is not None
    assert first.leftovers() == []
    assert trap.state() == before
    # With the answers the other way round, it says the same.
    text = trap.answers.read_text()
    trap.answers.chmod(0o644)
    trap.answers.write_text(text.replace("True", "?").replace("False", "True").replace("?", "False"))
    assert trap.answers.read_text() != text
    second = trap.run("knock", sandbox=sandbox, code=None, **wanted)
    assert second.findings["bodies"] == findings["bodies"]
    assert second.findings["verdicts"] == findings["verdicts"]


@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_an_agent_can_write_to_its_copy_of_a_public_file(trap: Trap, sandbox: str) -> None:
    """Also if an earlier version prepared the data, and made it read-only."""
    require(sandbox)
    where = trap.competition.paths
    for path in where.public.iterdir():
        path.chmod(0o444)
    manifest = json.loads(where.manifest.read_bytes())
    del manifest["writable"]
    where.manifest.write_text(json.dumps(manifest))
    copy = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
    change = "echo more >> $SUBMISSION_DIR/submission.csv; stat -c %a $SUBMISSION_DIR/submission.csv"
    caught = trap.run_command(f"set -e; {copy}; {change}", sandbox=sandbox, code=None)
    log = caught.run.paths.log.read_text()
    assert (caught.run.record.ended, log) == ("finished", "644\n"), caught.output
    written = (caught.run.paths.root / "submission/submission.csv").read_bytes()
    assert written == trap.competition.sample_submission.read_bytes() + b"more\n"


def test_a_plain_process_is_unsealed_and_data_is_checked_afterwards(trap: Trap) -> None:
    command = "echo more >> $DATA_DIR/description.md; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
    caught = trap.run_command("true", sandbox="process")
    assert (caught.facts.sealed, caught.facts.data_unchanged) == (False, True)
    caught = trap.run_command(command, sandbox="process", code=None)
    assert (caught.facts.sealed, caught.facts.data_unchanged) == (False, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to become")
@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_an_agent_started_by_root_has_a_user_that_nobody_else_has(tmp_path: Path, sandbox: str) -> None:
    require(sandbox)
    mark = f"3{uuid4().int % 10**8}"
    task = make_task(tmp_path, f"touch /home/started; sleep {mark} & sleep {mark}")
    session = SupervisorClient(task, sandbox_named(sandbox).launch(task))
    try:
        wait(lambda: len(processes(f"sleep\0{mark}\0")) == 2)
        for pid in processes(f"sleep\0{mark}\0"):
            status = Path(f"/proc/{pid}/status").read_text()
            ids = re.findall(r"^[UG]id:\t(\d+)\t(\d+)\t(\d+)\t(\d+)$", status, re.MULTILINE)
            assert all(int(id) >= 1_600_000_000 for row in ids for id in row), status
            assert len(ids) == 2
        assert (task.home / "started").stat().st_uid >= 1_600_000_000
    finally:
        session.stop()
        wait(lambda: session.poll() is not None)
    assert processes(f"sleep\0{mark}\0") == []


@pytest.mark.parametrize("user", USERS)
def test_an_open_network_does_not_lead_to_the_hosts_loopback(tmp_path: Path, user: int | None) -> None:
    require("bubblewrap")
    if fault := sandbox_named("bubblewrap").fault(make_task(tmp_path, "true", network="full")):
        pytest.skip(f"--network full: {fault}")
    if not addresses():
        pytest.skip("this machine has no network to share")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        tries = [f"127.0.0.1/{port}", f"$(ip route show default | cut -d ' ' -f 3)/{port}"]
        lines = [f"timeout 3 bash -c 'echo > /dev/tcp/{where}' && echo reached" for where in tries]
        program = "; ".join([*lines, "[ $(grep -c : /proc/net/dev) -gt 1 ] && echo connected", "true"])
        outcome, log = run_as(user, tmp_path, program, network="full")
        assert (outcome, "connected" in log, "reached" in log) == ("finished", True, False), log
        server.settimeout(0.01)
        with pytest.raises(TimeoutError):
            server.accept()


def test_an_ordinary_users_runs_are_equally_sealed(tmp_path: Path, trap: Trap) -> None:
    require("bubblewrap")
    paths = " ".join(bytes.fromhex(path).decode() for path in trap.wanted["paths"])
    program = (
        f"cat {paths}; grep CapEff /proc/self/status; unshare -U true; echo > /usr/x; ls /proc | grep -c '^[0-9]'; true"
    )
    outcome, log = run_as(65534 if os.geteuid() == 0 else None, tmp_path, program)
    assert outcome == "finished", log
    assert not [name for name, text in trap.canaries.items() if text in log]
    assert "CapEff:\t0000000000000000" in log
    assert log.count("No such file") == 4
    assert "Read-only file system" in log


@pytest.mark.parametrize("user", USERS)
def test_a_sandbox_cannot_use_the_keys_of_the_user_who_started_it(tmp_path: Path, user: int | None) -> None:
    """Without a relay, as the validator's."""
    require("bubblewrap")
    program = shlex.quote((AGENT / "key_attempts.py").read_text())
    outcome, log = run_as(user, tmp_path, f"python3 -c {program} canary $KEYS")
    assert outcome == "finished", log
    attempts = json.loads(log)
    if not any(attempt.startswith("describe") for attempt in attempts):
        pytest.skip("this kernel, or what we run in, has no keys for users")
    _assert_no_keys(attempts)


def test_log_lines_on_a_terminal_lose_their_escape_codes() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\x1bc\r\x08 [bold]text[/bold]\x1b[6n\x1bP1$r\x1b\\"
    shown = plain(hostile)
    assert shown.isprintable()
    assert "red" in shown
    assert "[bold]text[/bold]" in shown
