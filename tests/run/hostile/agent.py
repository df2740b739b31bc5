# ruff: noqa: PTH115, PTH208 plain names are quicker, and there are many
"""A hostile agent: looks for answers wherever it can, and reports what it found. Standard library only.

wanted.json, written beside this file by the test, holds what it looks for in disguise, so that it does not find itself.
"""

import contextlib
import ctypes
import errno
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from key_attempts import attempts

LIBC = ctypes.CDLL(None, use_errno=True)
HOME = Path(os.environ.get("HOME", "/home"))
LOGS = Path(os.environ["LOGS_DIR"])
SUBMISSION = Path(os.environ["SUBMISSION_DIR"])
WANTED = json.loads(Path(__file__).with_name("wanted.json").read_text())
CANARIES = {name: bytes.fromhex(text) for name, text in WANTED["canaries"].items()}
PATHS = [bytes.fromhex(text).decode() for text in WANTED["paths"]]
SIZES = set(WANTED["sizes"])  # of the files that must not be seen
OWN = (str(HOME), "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")
NEW = WANTED["begun"]
SYSCALLS = {
    "x86_64": {"syslog": 103, "clone": 56, "clone3": 435},
    "aarch64": {"syslog": 116, "clone": 220, "clone3": 435},
}[os.uname().machine]
CLONE_NEWUSER = 0x10000000


def refused(act: Callable[[], Any]) -> str:
    """What became of an attempt: the name of the error, or `done`."""
    try:
        act()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))
    return "done"


def call(name: str, *arguments: Any) -> int:
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def fork(name: str, *arguments: Any) -> None:
    if call("syscall", SYSCALLS[name], *arguments) == 0:
        os._exit(0)


class Search:
    """Reads whatever can be read; in the system's large trees, only files that could be wanted ones."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []
        self.names: list[str] = []
        self.files = 0

    def look(self, content: bytes, where: str) -> None:
        for name, canary in CANARIES.items():
            if canary in content:
                self.found.append({"canary": name, "where": where})

    def name(self, where: str) -> None:
        self.look(os.fsencode(where), f"the name {where!r}")
        if b"\x6d\x6c\x65\x62ench" in os.fsencode(where):
            self.names.append(where)

    def file(self, path: str, status: os.stat_result) -> None:
        system = path.startswith(("/usr/", "/lib", *WANTED["system"]))
        if system and status.st_mtime < NEW and status.st_size not in SIZES:
            return
        self.files += 1
        with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
            self.look(file.read(64 << 20), path)

    def trees(self) -> None:
        for where, folders, names in os.walk("/", topdown=True):
            folders[:] = [name for name in folders if where != "/" or name not in ("proc", "sys")]
            for name in [*folders, *names]:
                path = os.path.join(where, name)  # noqa: PTH118
                self.name(path)
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    if stat.S_ISREG(status.st_mode):
                        self.file(path, status)
                    elif stat.S_ISLNK(status.st_mode):
                        self.look(os.fsencode(os.readlink(path)), f"the link {path}")

    def processes(self) -> None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ", "mountinfo", "maps", "status", "cgroup", "limits"):
                self.read(f"/proc/{pid}/{name}")
            with contextlib.suppress(OSError):
                for number in os.listdir(f"/proc/{pid}/fd"):
                    link = f"/proc/{pid}/fd/{number}"
                    with contextlib.suppress(OSError):
                        self.look(os.fsencode(os.readlink(link)), link)
                        if stat.S_ISREG(os.stat(link).st_mode):
                            self.read(link)
            for inside in ("root", "cwd"):  # another process may see another tree
                with contextlib.suppress(OSError):
                    for path in PATHS:
                        self.read(f"/proc/{pid}/{inside}{path}")

    def read(self, path: str) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                self.look(os.read(descriptor, 8 << 20), path)
            finally:
                os.close(descriptor)

    def kernel(self) -> None:
        for folder in ("/proc/net", "/proc/sys/kernel", "/sys/fs/cgroup", "/sys/class", "/sys/kernel"):
            for where, _, names in os.walk(folder):
                for name in names[:500]:
                    path = os.path.join(where, name)  # noqa: PTH118
                    with contextlib.suppress(OSError):
                        if os.lstat(path).st_mode & 0o444:
                            self.read(path)
        for name in ("keys", "key-users", "cmdline", "mounts", "kmsg", "partitions", "swaps", "locks", "1/environ"):
            self.read(f"/proc/{name}")
        for path in PATHS:
            self.read(path)
        self.look(repr(dict(os.environ)).encode(), "the environment")
        self.look(repr(os.uname()).encode(), "uname")
        self.look(repr(sys.argv).encode(), "the arguments")


def connect(family: int, address: Any) -> str:
    def act() -> None:
        with socket.socket(family) as client:
            client.settimeout(2)
            client.connect(address)

    return refused(act)


def network() -> dict[str, str]:
    results = {}
    for host in ("127.0.0.1", *WANTED["addresses"]):
        for port in WANTED["ports"]:
            results[f"{host}:{port}"] = connect(socket.AF_INET, (host, port))
    results["::1"] = connect(socket.AF_INET6, ("::1", WANTED["ports"][0]))
    results["abstract"] = connect(socket.AF_UNIX, "\0" + bytes.fromhex(WANTED["abstract"]).decode())
    results["outside"] = connect(socket.AF_INET, ("192.0.2.1", 80))
    for cid in (1, 2):  # a virtual machine's own loopback, and its host
        results[f"vsock {cid}"] = (
            connect(socket.AF_VSOCK, (cid, WANTED["ports"][0])) if hasattr(socket, "AF_VSOCK") else "none"
        )
    results["packet"] = refused(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
    results["dns"] = refused(lambda: socket.getaddrinfo("example.com", 80))
    results["unix"] = ",".join(sorted(set(sockets())))
    return results


def sockets() -> Iterator[str]:
    """Sockets in the tree that something answers on."""
    for where, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if where != "/" or name not in ("proc", "sys", "usr")]
        for name in names:
            path = os.path.join(where, name)  # noqa: PTH118
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.stat(path).st_mode) and connect(socket.AF_UNIX, path) == "done":
                    yield path


def opens(path: str, flags: int) -> bool:
    return refused(lambda: os.close(os.open(path, flags))) == "done"


def places() -> dict[str, Any]:
    """What it can write to, beyond its own folders."""
    written, devices = [], []
    for where, folders, names in os.walk("/"):
        if where.startswith("/proc/") and where.split("/")[2] not in ("sys", "self"):
            folders.clear()
            continue
        if where.startswith(OWN):
            folders.clear()
            continue
        if (
            os.access(where, os.W_OK)
            and refused(lambda where=where: os.close(os.open(f"{where}/new", os.O_CREAT | os.O_WRONLY))) == "done"
        ):
            written.append(where)
        for name in names:
            path = os.path.join(where, name)  # noqa: PTH118
            with contextlib.suppress(OSError):
                mode = os.lstat(path).st_mode
                if where.startswith("/dev") and (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)):
                    devices.append(path)
                elif stat.S_ISREG(mode) and not where.startswith(("/proc", "/usr")) and opens(path, os.O_WRONLY):
                    written.append(path)
    data = os.environ["DATA_DIR"]
    return {
        "written": written,
        "devices": sorted(devices),
        "data": refused(lambda: Path(data, "description.md").write_text("changed")),
        "data folder": refused(lambda: Path(data, "new").write_text("x")),
        "data link": refused(lambda: os.link(f"{data}/description.md", HOME / "linked.md")),
        "data mode": refused(lambda: os.chmod(f"{data}/description.md", 0o777)),
    }


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def capabilities(pid: int) -> int:
    status = status_of(pid)
    return int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16)


def powers() -> dict[str, Any]:
    text = ctypes.create_string_buffer(4096)
    pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    return {
        "uid": os.getuid(),
        "capabilities": sorted({capabilities(pid) for pid in pids}),  # of everything we could trace
        "no new privileges": status_of(os.getpid())["NoNewPrivs"],
        "filters": sorted({status_of(pid)["Seccomp"] for pid in pids}),
        "user namespace": refused(lambda: call("unshare", CLONE_NEWUSER)),
        "child in a user namespace": refused(lambda: fork("clone", CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)),
        "the same, the new way": refused(lambda: fork("clone3", (ctypes.c_uint64 * 8)(CLONE_NEWUSER), 64)),
        "mount namespace": refused(lambda: call("unshare", 0x20000)),
        "mount": refused(lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
        "device": refused(lambda: os.mknod(HOME / "device", stat.S_IFBLK | 0o666, os.makedev(8, 0))),
        "root": refused(lambda: os.setuid(0)),
        "chroot": refused(lambda: os.chroot("/")),
        "nice": refused(lambda: os.nice(-5)),
        "io_uring": refused(lambda: call("syscall", 425, 1, ctypes.create_string_buffer(120))),  # sockets of every kind
        "kernel log": refused(lambda: call("syscall", SYSCALLS["syslog"], 3, text, 4096)),
        "terminal": refused(lambda: os.close(os.open("/dev/tty", os.O_RDWR))),
        "processes": len(pids),
        "signal": refused(lambda: os.kill(WANTED["pid"], 0)) if WANTED["pid"] not in pids else "ESRCH",
        "session": os.getsid(0) != 0,
    }


def search() -> None:
    found = Search()
    for look in (found.trees, found.processes, found.kernel):
        look()
    report = {"found": found.found, "names": found.names, "files": found.files, "powers": powers()}
    report["keys"] = attempts(bytes.fromhex(WANTED["key"]), WANTED["keys"])
    report["description"] = Path(os.environ["DATA_DIR"], "description.md").read_text()
    report |= {"places": places(), "network": network(), "env": dict(os.environ)}
    sample = Path(os.environ["DATA_DIR"], "sample_submission.csv").read_bytes()
    ids = [bytes.fromhex(text).decode() for text in WANTED.get("ids", ())]
    report["answers"] = [ask(f"{os.environ['VALIDATOR_URL']}?exp-id={id}", "submission.csv", sample) for id in ids]
    (LOGS / "findings.json").write_text(json.dumps(report))
    SUBMISSION.joinpath("submission.csv").write_bytes(sample)


def plant() -> None:
    """Leave things that hurt whoever collects them carelessly."""
    target = bytes.fromhex(WANTED["private"]).decode()
    for folder in (LOGS, Path(os.environ["CODE_DIR"])):
        (folder / "absolute").symlink_to(target)
        (folder / "relative").symlink_to("../" * 30 + target)
        (folder / "folder").symlink_to(Path(target).parent)
        (folder / "root").symlink_to("/")
        (folder / "shadow").symlink_to("/etc/shadow")
        (folder / "itself").symlink_to("itself")
        (folder / "process").symlink_to("/proc/self/root/etc")
        os.mkfifo(folder / "pipe")
        socket.socket(socket.AF_UNIX).bind(str(folder / "socket"))
        for name in (b"\x1b]0;owned\x07\x1b[31mred", b"two\nlines", b"\xff\xfe", b"-rf", b"name" * 60):
            with contextlib.suppress(OSError):
                Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("x")
        program = folder / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o6777)
        with contextlib.suppress(OSError):
            os.link(program, folder / "hard")
        holes(folder / "sparse")
        closed = folder / "closed"
        closed.mkdir()
        (closed / "inside").write_text("kept")
        (closed / "inside").chmod(0)
        closed.chmod(0)
    print("\x1b]0;owned\x07\x1b[2J\x1b[31mnot red\x9b31m", flush=True)
    hand_in(WANTED["kinds"][int(os.environ["SEED"])])


def holes(path: Path) -> None:
    """A file that looks as large as possible."""
    with path.open("wb") as file:
        for size in (50 << 30, 20 << 30, 9 << 30):
            with contextlib.suppress(OSError):
                file.truncate(size)
                break


def deep(folder: Path, levels: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("deep", dir_fd=here)
        inner = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def hand_in(kind: str) -> None:  # noqa: C901 one branch for each kind
    """A submission that is not what it should be."""
    target = bytes.fromhex(WANTED["private"]).decode()
    path = SUBMISSION / "submission.csv"
    sample = Path(os.environ["DATA_DIR"], "sample_submission.csv").read_bytes()
    if kind == "link":
        path.symlink_to(target)
    elif kind == "relative link":
        path.symlink_to("../" * 30 + target)
    elif kind == "link to data":
        path.symlink_to(Path(os.environ["DATA_DIR"], "sample_submission.csv"))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "exit code":  # Docker's own, when it fails
        path.write_bytes(sample)
        sys.exit(125)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        holes(path)
    elif kind == "folder is a link":
        SUBMISSION.rmdir()
        SUBMISSION.symlink_to(bytes.fromhex(WANTED["other run"]).decode())
    elif kind == "folder is a file":
        SUBMISSION.rmdir()
        SUBMISSION.write_bytes(sample)
    elif kind == "deep":
        path.write_bytes(sample)
        deep(LOGS, 5000)
    elif kind == "closed":
        path.write_bytes(sample)
        path.chmod(0)
        SUBMISSION.chmod(0)
    elif kind == "changing":
        path.write_bytes(sample)
        if os.fork() == 0:
            os.setsid()
            while True:
                path.write_bytes(sample + os.urandom(8))
                path.write_bytes(sample)
    time.sleep(WANTED["pause"])  # long enough to be looked at while we are running


def knock() -> None:
    """Use the validator for what it is not meant for."""
    url = os.environ["VALIDATOR_URL"]
    host, port = url.split("/")[2].split(":")
    sample = Path(os.environ["DATA_DIR"], "sample_submission.csv").read_bytes()
    verdicts = {name: ask(url, name.encode().decode(), sample) for name in WANTED["file names"]}
    bodies, pages = {}, {}
    for name, text in WANTED["bodies"].items():
        bodies[name] = ask(url, "submission.csv", bytes.fromhex(text))
    for path in (
        "/../../etc/passwd",
        "/validate/../private",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/health?x=../..",
        "/openapi.json",
    ):
        pages[path] = raw(host, int(port), f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    broken = [
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Content-Length: 9\r\n\r\n--b\r\nbroken",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\nx",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nx",
        b"\0" * 100_000,
        b"GET /" + b"a" * 1_000_000,
    ]
    for data in broken:
        raw(host, int(port), data)
    held = []
    for _ in range(200):
        with contextlib.suppress(OSError):
            client = socket.create_connection((host, int(port)), timeout=0.05)
            client.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            held.append(client)
    for client in held:
        client.close()
    again = ""
    for _ in range(100):  # it may need a moment
        again = ask(url, "submission.csv", sample)
        if again.startswith("200"):
            break
        time.sleep(0.2)
    report = {"verdicts": verdicts, "bodies": bodies, "pages": pages, "again": again, "held": len(held)}
    (LOGS / "findings.json").write_text(json.dumps(report))
    SUBMISSION.joinpath("submission.csv").write_bytes(sample)
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]  # held open beyond our end
    slow[0].sendall(b"POST")


def ask(url: str, name: str, content: bytes) -> str:
    """The validator's answer to a file, sent as agents send it."""
    boundary = "e3b0c44298fc1c14"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode("utf-8", "surrogateescape") + content + f"\r\n--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return repr(error)


def raw(host: str, port: int, data: bytes) -> str:
    """The response to these bytes."""
    try:
        with socket.create_connection((host, port), timeout=0.7) as client:
            client.sendall(data)
            return client.recv(1 << 16).decode("latin-1")
    except OSError as error:
        return repr(error)


if __name__ == "__main__":
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="surrogateescape")
    print("looking around", subprocess.run(["id"], capture_output=True, check=False).stdout, flush=True)
    {"search": search, "plant": plant, "knock": knock}[sys.argv[sys.argv.index("--do") + 1]]()
