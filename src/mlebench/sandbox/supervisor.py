"""The supervisor: starts a sandbox, enforces its limits, and ends all its processes, whatever happens to the runner.

A separate program of few modules, so that it starts quickly and outlives a killed runner for as long as it takes to
clean up. Its standard input carries a line of JSON (`encode_job`), then a byte now and then. When no more come, or
the stream ends, the sandbox is ended. On standard output the supervisor says, in a line of JSON each, that it
starts the sandbox, and how it ended. How it ended also goes into a file, for which room is reserved before the start:
an agent that has ended is never started again, even if the runner is gone by then or the disk is full.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mlebench.core import paths
from mlebench.core.processes import end_with_parent
from mlebench.records.group import Limits
from mlebench.sandbox import resource_usage
from mlebench.sandbox.base import BIND_ROOT, RELAY, SILENCE, Launch, Task, decode_job
from mlebench.sandbox.cgroups import Cgroup
from mlebench.sandbox.cpus import CpuChoice, write_sys
from mlebench.sandbox.output_log import OutputLog
from mlebench.sandbox.shared_disk import FRESH, DiskNotes, DiskShortage

TICK = 0.25
LONGEST_TICK = 5.0  # seconds; after more than that, the whole job was suspended
HEALTH_CHECK_PAUSE = 5.0  # seconds between checks whether a sandbox is alive
MOST_FAILED_CHECKS, MOST_FAILED_AT_START = 3, 24  # failed checks; on a busy machine, a container is slow to start
LOOK_AGAIN = 2.0  # seconds between measurements on a full disk, if they are quick; time for other runs to measure, too
FAILED = b"failed: "
DRAIN = 5.0  # seconds for output to end once every process is dead
SETUP = 10.0  # seconds: a sandbox that fails later has certainly started its program
OUTCOME_SIZE = 1 << 15  # bytes reserved for how it ended
LONGEST_DETAIL = 2000  # characters, each of up to 12 bytes in JSON
SPARE = 4  # times the limit of processes: runs of the same user start some, too
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)
KEYCTL, KEYCTL_JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1  # the number of the system call


@dataclass
class SupervisorReport:
    """How a sandbox ended. `cause` is None if the program ended by itself."""

    cause: str | None = None
    detail: str | None = None
    exit_code: int | None = None
    agent_started: bool = True
    kept: dict[str, str] = field(default_factory=dict)  # what enforced each limit
    seconds: float = 0.0
    oom_kills: int = 0
    memory_peak: int | None = None
    cpu_seconds: float | None = None
    disk: int | None = None
    disk_filled_by: str | None = None  # if it was nearly full: `this run`, `other runs` or `others`
    log_dropped: int = 0


class Supervisor:
    def __init__(self, task: Task, launch: Launch):
        self.task, self.limits, self.launch = task, task.limits, launch
        self.ending = SupervisorReport()
        self._outcome = _reserve(paths.outcome(task.work))
        limits = task.limits
        self.cgroup = Cgroup.create(task.name, limits.memory, limits.cpus, limits.processes) if launch.cgroup else None
        self.ending.kept = self._enforced_by()
        self.log = OutputLog(task.work / paths.RUN_LOG, task.limits.log)
        notes = partial(DiskNotes, str(paths.disk_note(task.work)), paths.disk_notes(task.work))
        self.disk = resource_usage.DiskWatch(launch.writable, str(task.work), notes)
        self._shortage: DiskShortage | None = None
        self._next_look = 0.0
        self.cpus = self._choose_cpus()
        # Nobody else has the other end.
        self._child_input, self._parent_pipe = (
            os.pipe() if launch.parent_pipe else (os.open(os.devnull, os.O_RDONLY), None)
        )
        self.output, self._child_output = os.pipe()
        self.status, self._child_status = os.pipe()  # closed when the program runs, unless it reports there
        self.started = self.heard = time.monotonic()
        self._last_health_check, self._failed_checks, self._most_failed_checks = self.started, 0, MOST_FAILED_AT_START
        self.pid = self._first_process = 0

    def _choose_cpus(self) -> CpuChoice | None:
        if not self.launch.cgroup:
            return None
        enforced = bool(self.cgroup and "cpu" in self.cgroup.enforced_by)
        cpus = CpuChoice.choose(self.limits.cpus, enforced=enforced, exclusive=self.task.own_cpus)
        if self.launch.sys:
            write_sys(Path(self.launch.sys), cpus.numbers, self.limits.cpus, self.limits.memory)
        return cpus

    def _enforced_by(self) -> dict[str, str]:
        """What enforces each limit; one that is only watched can be exceeded for a moment."""
        enforced_by = {"time": "clock", "disk": "watched"}
        if not self.launch.cgroup:
            return enforced_by | dict.fromkeys(("memory", "cpu", "pids"), "the sandbox")
        enforced = self.cgroup.enforced_by if self.cgroup else {}
        watched = {
            "memory": "not limited: that of processes is watched, files in memory are not",
            "cpu": "affinity, not enforced",
            "pids": "watched, not enforced",
        }
        return enforced_by | watched | enforced

    def run(self) -> SupervisorReport:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _say({"event": "starting", "kept": self.ending.kept})  # if we die before, no agent was started
        supervisor, self.pid = os.getpid(), os.fork()
        if self.pid == 0:
            cpus = self.cpus.numbers if self.cpus else []
            _become(
                supervisor,
                self.launch,
                self.limits,
                self.cgroup,
                cpus,
                (self._child_input, self._child_output, self._child_status),
            )
        os.close(self._child_input)
        os.close(self._child_output)
        os.close(self._child_status)
        os.set_blocking(self.output, False)
        try:
            self._watch()
        finally:
            self._end()
            self._record()
        return self.ending

    def _record(self) -> None:
        """Record how it ended, over the blanks that were reserved, which takes no space.

        Some disks need space all the same, and a disk that fails or was made read-only takes nothing.
        """
        self.ending.detail = self.ending.detail and self.ending.detail[:LONGEST_DETAIL]
        content = json.dumps(asdict(self.ending)).encode()[:OUTCOME_SIZE]
        try:
            os.pwrite(self._outcome, content, 0)
            os.fsync(self._outcome)
        except OSError:
            with contextlib.suppress(OSError):
                spare = os.open(paths.spare_outcome(self.task.name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                os.write(spare, content)
                os.close(spare)

    def _watch(self) -> None:
        """Watch until the program has ended, or must be ended."""
        poll = select.poll()
        poll.register(self.output, select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN)
        child = os.pidfd_open(self.pid)
        poll.register(child, select.POLLIN)
        try:
            while not self.ending.cause:
                begun = time.monotonic()
                ready = dict(poll.poll(TICK * 1000))
                if (pause := time.monotonic() - begun) > LONGEST_TICK:  # we were stopped, and so was the runner
                    self.heard += pause
                if self.output in ready and not self.log.take(self.output):
                    poll.unregister(self.output)
                if sys.stdin.fileno() in ready:
                    self._hear()
                if child in ready:
                    return
                if not self.ending.cause:
                    self._judge()
        finally:
            os.close(child)

    def _hear(self) -> None:
        if os.read(sys.stdin.fileno(), 4096):
            self.heard = time.monotonic()
        else:
            self._stop("cancelled", "the runner has ended")

    def _judge(self) -> None:
        """Check whether a limit has been exceeded."""
        now, limits, launch = time.monotonic(), self.limits, self.launch
        if now - self.started > limits.seconds:
            self._stop("timeout", f"the time limit of {limits.seconds:g} s was reached")
        elif now - self.heard > SILENCE:
            self._stop("cancelled", "the runner does not answer")
        elif self._is_disk_full():
            pass
        elif (
            self._watches("memory")
            and limits.memory is not None
            and resource_usage.memory_of(self._pids()) > limits.memory
        ):
            self._stop("out_of_memory", f"more than {limits.memory} bytes of memory were in use")
        elif self._watches("pids") and resource_usage.count_threads(self._pids()) > limits.processes:
            self._stop("agent_error", f"more than {limits.processes} processes were started")
        elif launch.health_check and now - self._last_health_check > HEALTH_CHECK_PAUSE:
            self._last_health_check = now
            if _call(launch.health_check).returncode == 0:
                self._failed_checks, self._most_failed_checks = 0, MOST_FAILED_CHECKS
            else:
                self._failed_checks += 1
            if self._failed_checks == self._most_failed_checks:
                self._stop("infra_error", "the sandbox has died")

    def _watches(self, resource: str) -> bool:
        """Whether a limit is ours to enforce, because no control group and no container engine does."""
        return self.launch.cgroup and not (self.cgroup and resource in self.cgroup.enforced_by)

    def _is_disk_full(self) -> bool:
        """Whether the sandbox is to be ended because it used too much, or filled the disk more than any other run.

        If it may hide files from us, it has to be ended to see what that frees.
        """
        if fault := self.disk.fault(self.limits.disk, self.limits.inodes, self._pids):
            self._stop("over_disk", fault)
        elif (begun := time.monotonic()) > self._next_look and (shortage := self.disk.shortage(self._pids)):
            pause = max(LOOK_AGAIN, 10 * (time.monotonic() - begun))
            self._next_look = time.monotonic() + min(pause, FRESH / 2)
            self.ending.disk_filled_by = shortage.by
            if shortage.is_own:
                self._stop("over_disk", str(shortage))
            elif shortage.is_suspect:
                self._shortage = shortage
                self._stop("infra_error", str(shortage))
        return bool(self.ending.cause)

    def _stop(self, cause: str, detail: str) -> None:
        self.ending.cause, self.ending.detail = cause, detail

    def _pids(self) -> set[int]:
        """Every process of the sandbox. The first may be the agent's own program, if nothing stands before it."""
        if self.cgroup:
            return self.cgroup.pids()
        first = self.pid if self.launch.cgroup else self._container_process()
        return {first} | resource_usage.descendants(first) if first else set()

    def _container_process(self) -> int:
        """The relay in a container, which is the engine's child; 0 before it has started, or on another machine."""
        if not self._first_process and self.launch.pid_query:
            answer = _call(self.launch.pid_query).stdout.strip()
            with contextlib.suppress(OSError, ValueError):
                pid = int(answer)
                if RELAY.name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    self._first_process = pid
        return self._first_process

    def _end(self) -> None:
        """End every process, then record what was used."""
        ending = self.ending
        ending.seconds = time.monotonic() - self.started
        if not ending.cause and (shortage := self.disk.shortage(self._pids)):
            ending.disk_filled_by = shortage.by
        query = self.launch.exit_code_query
        code = _call(query).stdout.strip() if query and not ending.cause else None
        for command in self.launch.stop_commands:
            _call(command)
        ending.exit_code = self._kill()
        if self._shortage and (shortage := self.disk.shortage_after_end(self._shortage)).is_own:
            ending.cause, ending.detail, ending.disk_filled_by = "over_disk", str(shortage), shortage.by
        if self.cgroup:
            ending.oom_kills = self.cgroup.oom_kills()
        elif self.launch.oom_query:
            ending.oom_kills = int(_call(self.launch.oom_query).stdout.strip() == b"true")
        for command in self.launch.cleanup_commands:
            _call(command)
        deadline = time.monotonic() + DRAIN
        while self.log.take(self.output) and time.monotonic() < deadline:
            select.select([self.output], [], [], TICK)
        ending.log_dropped = self.log.finish()
        # The kernel may also have killed the program that would report the end.
        if not ending.cause and not ending.oom_kills and (fault := self._start_fault(code)):
            ending.cause, ending.detail = "infra_error", fault
            ending.agent_started = ending.seconds > SETUP
        ending.disk = self.disk.used
        if self.cgroup:
            ending.memory_peak, ending.cpu_seconds = self.cgroup.memory_peak(), self.cgroup.cpu_seconds()
            self.cgroup.remove()

    def _start_fault(self, engines_code: bytes | None) -> str | None:
        """Why the task did not finish, if it did not."""
        if engines_code is not None and engines_code != b"%d" % (self.ending.exit_code or 0):
            return f"the sandbox failed: {self.log.last_line()}"
        report = b""
        while data := os.read(self.status, 1 << 16):
            report += data
        if report.startswith(FAILED):
            return report.removeprefix(FAILED).decode(errors="replace")
        if self.launch.status is not None and b'"exit-code"' not in report:
            return f"the sandbox could not be set up: {self.log.last_line()}"
        return None

    def _kill(self) -> int | None:
        """End the program and everything it started; returns its exit code, if it had ended by itself."""
        code = None
        if not self.ending.cause:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        if self.cgroup:
            self.cgroup.kill()
        while True:  # orphans have become our children
            orphans = resource_usage.descendants(os.getpid())
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(0.005)
        return code


def _become(
    parent: int,
    launch: Launch,
    limits: Limits,
    cgroup: Cgroup | None,
    cpus: list[int],
    descriptors: tuple[int, int, int],
) -> None:
    """In the child: take on limits, user and descriptors (input, output and status), and become the program."""
    input, output, status = descriptors
    try:
        os.setsid()
        _leave_ours()
        if cgroup:
            cgroup.join()
        for source, target in ((input, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        _limit(launch, limits, cgroup, cpus)
        for number, content in launch.files.items():
            memory = os.memfd_create("arguments")
            os.write(memory, content)
            os.lseek(memory, 0, os.SEEK_SET)
            os.dup2(memory, number)
        if launch.mounts:
            _mount(launch.mounts)
        if launch.uid is not None:
            os.setgroups([])
            os.setresgid(launch.uid, launch.uid, launch.uid)
            os.setresuid(launch.uid, launch.uid, launch.uid)
        end_with_parent(parent)
        if launch.status is not None:
            os.dup2(status, launch.status)
        os.execvpe(launch.argv[0], launch.argv, launch.env)  # noqa: S606
    except BaseException as error:
        os.write(status, FAILED + f"the sandbox could not be started: {error}".encode())
        os._exit(127)


def _limit(launch: Launch, limits: Limits, cgroup: Cgroup | None, cpus: list[int]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.disk is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.disk, limits.disk))
    if cpus:
        os.sched_setaffinity(0, cpus)
    if launch.cgroup and not (cgroup and "pids" in cgroup.enforced_by):
        _bound_processes(launch.uid, limits.processes)


def _bound_processes(uid: int | None, processes: int) -> None:
    """Limit processes so that a fork bomb cannot starve us before we see it.

    The kernel counts all threads of a user, except root's.
    """
    user = os.getuid() if uid is None else uid
    bound = resource_usage.count_threads_of(user) + SPARE * processes
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    if most == resource.RLIM_INFINITY or bound < most:
        resource.setrlimit(resource.RLIMIT_NPROC, (bound, bound))


def _leave_ours() -> None:
    """Drop the supervisor's ignored signals, and the keys of the user who runs the benchmark."""
    for ignored in IGNORED:
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the runner's thread that started us may have blocked some
    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)


def _mount(mounts: Sequence[tuple[str, str]]) -> None:
    """In our own mount namespace, make sources reachable that another user could not reach by their path."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, action: str) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), f"{action}: {os.strerror(ctypes.get_errno())}")

    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    # Sources are opened first: some may be below the folder that targets are mounted on.
    sources = [os.open(source, os.O_PATH) for source, _ in mounts]
    check(libc.mount(b"tmpfs", os.fsencode(BIND_ROOT), b"tmpfs", 0, b"mode=0755,size=1m"), BIND_ROOT)
    for source, (name, target) in zip(sources, mounts, strict=True):
        if stat.S_ISDIR(os.fstat(source).st_mode):
            Path(target).mkdir(0o755)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        check(libc.mount(b"/proc/self/fd/%d" % source, os.fsencode(target), None, MS_BIND | MS_REC, None), name)


def _reserve(path: Path) -> int:
    """A new file full of blanks, which JSON ignores."""
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.write(descriptor, b" " * OUTCOME_SIZE)
    os.fsync(descriptor)
    return descriptor


def _call(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return subprocess.CompletedProcess(command, 1, b"", b"")


def _say(event: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, (json.dumps(event) + "\n").encode())


def _first_line(descriptor: int) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            raise EOFError("nothing was asked for")
        line += byte
    return bytes(line)


def main() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)  # the runner decides, through standard input
    task, launch = decode_job(_first_line(0))
    for descriptor in task.held_descriptors:
        os.set_inheritable(descriptor, False)
    ending = Supervisor(task, launch).run()
    _say({"event": "ended", **asdict(ending)})


if __name__ == "__main__":
    main()
