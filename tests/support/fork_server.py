"""A program that runs commands of mlebench in children of its own, each killed at a chosen write to the disk.

Forking a process that has imported everything takes milliseconds; starting a new one takes a second. The program reads
a request, a JSON object, from each line of its input, and answers with the exit code of the command.
"""

import importlib
import json
import os
import re
import resource
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

CHANGES = {f"os.{name}" for name in ("rename", "link", "remove", "mkdir", "rmdir", "chmod", "truncate", "utime")}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


CHANGING_PARTS = re.compile(r"(?<=\.mlebench-part-)\d+|(?<=draft\.)\w+|(?<=/mlebench-)\w{8}(/tmp\w{8}|/\d+)?")


class Writes:
    """Names the writes of this process below a folder, and kills it at one of them, before it or half-way through.

    In the same command, a write has the same name every time: its path and how often there was such a write before. A
    number would not do, since leases are renewed at any time.
    """

    def __init__(self, root: str, kill_at: str, size: int | None):
        self._root = root
        self._kill_at = kill_at
        self._size = size
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.names: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES and not (event == "open" and arguments[2] & WRITING):
            return
        path = arguments[0] if isinstance(arguments[0], int) else os.fsdecode(arguments[0])
        if isinstance(path, int):  # of an open file
            path = "" if event == "open" else "open file"
        elif path.startswith("/"):
            path = CHANGING_PARTS.sub("N", path[len(self._root) :]) if path.startswith(self._root) else ""
        if path:
            self._pass(f"{event} {path}")

    def _pass(self, write: str) -> None:
        with self._lock:
            name = f"{write} {self._counts[write]}"
            self._counts[write] += 1
            self.names.append(name)
        if name == self._kill_at and self._size is None:
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == self._kill_at:  # the system kills a process that makes a file longer than this
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._size or 0, resource.RLIM_INFINITY))


def run(
    arguments: list[str], root: str, log: str, kill_at: str = "", size: int | None = None, record: str | None = None
) -> int:
    """Run a command; its output goes to the log unless it is killed.

    The file `record` gets the names of its writes below `root`, and of the modules that it imported.
    """
    from mlebench.cli import main

    target = os.open(os.devnull if kill_at else log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(target, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    writes = Writes(root, kill_at, size)
    sys.addaudithook(writes)
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    else:
        code = 0
    if record:
        done = {"writes": list(writes.names), "modules": sorted(sys.modules)}
        Path(record).write_text(json.dumps(done), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        for name in request.pop("modules", ()):
            with suppress(Exception):  # some are not meant to be imported by name
                importlib.import_module(name)
        child = os.fork()
        if not child:
            code = 70
            try:
                code = run(**request)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    serve()
