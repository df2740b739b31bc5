"""bubblewrap: a sandbox with no daemon and no root. What the task sees is an allow-list.

Everything is started as an ordinary user. Root first makes what the sandbox needs reachable in a mount namespace, then
becomes a user that no other process of the host has. So nothing in the sandbox is root outside it.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.sandbox import cgroups
from mlebench.sandbox.base import (
    BIND_ROOT,
    FIRST_UID,
    HOME,
    INNER_UID,
    PROXIES,
    RELAY,
    Launch,
    Sandbox,
    Task,
    chown_tree,
    hidden_paths,
    interpreter,
    interpreter_prefixes,
    paths_to_hide,
)
from mlebench.sandbox.relay import system_call_filter

TUN = "/dev/net/tun"
STATUS, ARGUMENTS, FILTER = 100, 101, 102  # descriptors; arguments on the command line would show host paths in /proc
SYS = "sys"  # below the task's folder: what it sees as /sys
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# fmt: off
ETC = (
    "alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic",
    "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
    "timezone",
)
# fmt: on
PASSWD = (
    f"root:x:0:0:root:/root:/bin/sh\nnonroot:x:{INNER_UID}:{INNER_UID}::/home:/bin/bash\n"
    "nobody:x:65534:65534::/:/bin/sh\n"
)
GROUP = f"root:x:0:\nnonroot:x:{INNER_UID}:\nnogroup:x:65534:\n"
HOSTS = "127.0.0.1 localhost sandbox\n::1 localhost\n"
GPU_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
KEY_LISTS = ("/proc/keys", "/proc/key-users")  # of the user who started the sandbox: there is no namespace for keys
REMEDY = (
    "an ordinary user must be allowed to make user namespaces. As root, try "
    "`sysctl -w kernel.unprivileged_userns_clone=1`, `sysctl -w user.max_user_namespaces=10000` and, on Ubuntu, "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
)


class Bubblewrap(Sandbox):
    name = "bubblewrap"

    def fault(self, task: Task | None = None) -> str | None:
        if fault := _machine_fault():
            return fault
        if task is None:
            return None
        if task.privileged:
            return "bubblewrap has no privileged mode; use --sandbox docker"
        if odd := [gpu for gpu in task.gpus if not gpu.isdigit()]:
            return f"bubblewrap gives a task whole GPUs only, by index, not {odd[0]}; use --sandbox docker"
        return _network_fault() if task.network == "full" else None

    def launch(self, task: Task) -> Launch:
        root = os.geteuid() == 0
        binds = _Binds(reach=root)
        system = _system(binds)
        (task.work / SYS).mkdir(exist_ok=True)
        arguments = [*_namespaces(task), *system.arguments, *_devices(task), *_task(task, binds, system.shown)]
        uid = FIRST_UID + os.getpid() if root else None
        if uid is not None:
            chown_tree(task.work, uid)
        files = {ARGUMENTS: "".join(f"{word}\0" for word in arguments).encode("utf-8", "surrogateescape")}
        options = ["--json-status-fd", str(STATUS), "--args", str(ARGUMENTS)]
        # The relay installs it, too. This one is there before any Python runs.
        if filter := system_call_filter(namespaces=False):
            files[FILTER] = filter
            options += ["--seccomp", str(FILTER)]
        return Launch(
            argv=(*_network(task, binds), binds.program("bwrap"), *options, "--", *_inner(task)),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **_library_path()},
            files=files,
            uid=uid,
            mounts=tuple(binds.mounts),
            status=STATUS,
            sys=str(task.work / SYS),
            writable=(str(task.home), str(task.work / "tmp")),
        )

    def conditions(self, task: Task) -> dict[str, Any]:  # noqa: ARG002
        return {"version": _version(), "rootless": os.geteuid() != 0}

    def remove_leftovers(self, name: str) -> None:
        """Remove its control group: nothing else outlives the supervisor."""
        cgroups.remove_leftovers(name)


class _Binds:
    """Sources at paths that bubblewrap can reach: root binds each one where an ordinary user can go."""

    def __init__(self, *, reach: bool):
        self._reach = reach
        self.mounts: list[tuple[str, str]] = []

    def __call__(self, source: Path | str) -> str:
        if not self._reach:
            return str(source)
        target = f"{BIND_ROOT}/{len(self.mounts)}"
        self.mounts.append((str(source), target))
        return target

    def program(self, name: str) -> str:
        """The path of a program that this process's PATH has; the sandbox has a PATH of its own.

        What root mounts on BIND_ROOT hides a program there, so it is bound, and its libraries beside it, too.
        """
        path = _path_of(name)
        if not self._reach or BIND_ROOT not in map(str, path.parents):
            return str(path)
        prefix = next(folder for folder in (path.parent.parent, path.parent, path) if len(folder.parts) > 2)
        return str(Path(self(prefix)) / path.relative_to(prefix))


def _namespaces(task: Task) -> list[str]:
    return [
        *(
            "--unshare-user",
            "--disable-userns",
            "--unshare-ipc",
            "--unshare-pid",
            "--as-pid-1",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ),
        *(() if task.network == "full" else ("--unshare-net",)),
        *("--uid", str(INNER_UID), "--gid", str(INNER_UID), "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
    ]


class _System(NamedTuple):
    arguments: list[str]
    shown: list[Path]


def _system(binds: _Binds) -> _System:
    """Arguments that show the host's programs, and which of its folders they show."""
    arguments: list[str] = []
    shown: list[Path] = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
            shown.append(path)
    for prefix in interpreter_prefixes(Path(sys.base_prefix)):
        if not any(prefix.is_relative_to(tree) for tree in shown):
            arguments += ["--ro-bind", binds(prefix), str(prefix)]
            shown.append(prefix)
    for name in ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return _System(arguments, shown)


def _devices(task: Task) -> list[str]:
    hidden = [word for path in KEY_LISTS if Path(path).exists() for word in ("--ro-bind", "/dev/null", path)]
    arguments = ["--proc", "/proc", *hidden, "--dev", "/dev", "--size", str(task.limits.shm), "--tmpfs", "/dev/shm"]  # noqa: S108
    if task.gpus:
        for node in (*GPU_NODES, *(f"nvidia{number}" for number in task.gpus)):
            arguments += ["--dev-bind-try", f"/dev/{node}", f"/dev/{node}"]
    return [*arguments, "--remount-ro", "/dev"]


def _task(task: Task, binds: _Binds, system: list[Path]) -> list[str]:
    arguments = ["--bind", binds(task.home), HOME, "--bind", binds(task.work / "tmp"), "/tmp"]  # noqa: S108 its own
    # Not a link: something may have to be mounted below it.
    arguments += ["--bind", binds(task.work / "tmp"), "/var/tmp"]  # noqa: S108
    shown = [*((path, str(path)) for path in system), *((bind.source, bind.target) for bind in task.binds)]
    masked = paths_to_hide((*hidden_paths(), *task.hidden), shown)
    mounts = [
        (hidden_path, ["--tmpfs"] if folder else ["--ro-bind", "/dev/null"]) for hidden_path, folder in masked.items()
    ]
    mounts += [(bind.target, ["--bind" if bind.writable else "--ro-bind", binds(bind.source)]) for bind in task.binds]
    # Deeper mounts come later, so only an explicit bind can uncover something hidden.
    for target, words in sorted(mounts, key=lambda mount: len(Path(mount[0]).parts)):
        arguments += [*words, target]
    arguments += ["--ro-bind", binds(RELAY), f"{PROXIES}/{RELAY.name}"]
    for proxy, socket in task.proxies.items():
        arguments += ["--ro-bind", binds(socket), f"{PROXIES}/{proxy}.sock"]
    arguments += ["--ro-bind", binds(task.work / SYS), "/sys"]
    etc = {"passwd": PASSWD, "group": GROUP, "hosts": HOSTS}
    for name, text in etc.items():
        (task.work / name).write_text(text, encoding="ascii")
        arguments += ["--ro-bind", binds(task.work / name), f"/etc/{name}"]
    if task.network == "full":
        arguments += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    for name, value in task.env.items():
        arguments += ["--setenv", name, value]
    for hidden_path in (hidden_path for hidden_path, folder in masked.items() if folder):
        arguments += ["--remount-ro", hidden_path]
    return [*arguments, "--remount-ro", "/", "--chdir", HOME]


def _inner(task: Task) -> list[str]:
    """The program, behind the relay that opens its proxies. A program could trace bubblewrap's own first process."""
    ports = [f"{port}={PROXIES}/{proxy}.sock" for port, proxy in task.ports.items()]
    return [interpreter(), "-I", "-S", f"{PROXIES}/{RELAY.name}", *ports, "--", *task.command]


def _path_of(program: str) -> Path:
    """The absolute path of a program on this process's PATH, which may be that of Nix or conda."""
    return Path(shutil.which(program) or program).absolute()


def _library_path() -> dict[str, str]:
    """Where programs installed outside the system may have their libraries."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def _network(task: Task, binds: _Binds) -> list[str]:
    """The command before bwrap: with `full`, a separate network stack that cannot reach the host's loopback."""
    if task.network != "full":
        return []
    none = ["-t", "none", "-u", "none", "-T", "none", "-U", "none"]
    return [binds.program("pasta"), "--quiet", "--config-net", "--no-map-gw", *none, "--"]


def _network_fault() -> str | None:
    if shutil.which("pasta") is None:
        return (
            "bubblewrap needs `pasta` for --network full (Debian's package passt): install it, or use another sandbox"
        )
    try:
        for_all = os.stat(TUN).st_mode & 0o006 == 0o006
    except OSError:
        for_all = False
    if for_all or (os.geteuid() != 0 and os.access(TUN, os.R_OK | os.W_OK)):  # root becomes another user
        return None
    return f"--network full needs {TUN}, open to ordinary users: as root, `chmod 666 {TUN}`, as most systems have it"


@cache
def _machine_fault() -> str | None:
    if not sys.platform.startswith("linux"):
        return "bubblewrap works on Linux only"
    if shutil.which("bwrap") is None:
        return "there is no `bwrap`: install your system's package bubblewrap"
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    trial = [
        str(_path_of("bwrap")),
        "--unshare-user",
        "--disable-userns",
        "--unshare-pid",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        *("/bin/sh", "-c", ":"),
    ]
    try:
        done = subprocess.run(trial, capture_output=True, text=True, timeout=20, check=False, cwd="/", **user)  # noqa: S603
    except PermissionError:
        return f"{trial[0]} is closed to other users, but root starts it as another: install your system's bubblewrap"
    except (OSError, subprocess.SubprocessError) as error:
        return f"bwrap cannot be started: {error}"
    if done.returncode == 0:
        return None
    if "--disable-userns" in done.stderr and "nknown option" in done.stderr:
        return f"{_version()} is too old: version 0.8 or later is needed"
    return f"bwrap does not work here ({done.stderr.strip()[-200:]}): {REMEDY}"


@cache
def _version() -> str:
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False).stdout.strip()  # noqa: S607
