"""Docker, through its command line. The same layout as everywhere; everything writable is bound or bounded."""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from mlebench.core.errors import SandboxError
from mlebench.sandbox.base import (
    FIRST_UID,
    HOME,
    INNER_UID,
    PROXIES,
    RELAY,
    Launch,
    Sandbox,
    Task,
    chown_tree,
    paths_to_hide,
)
from mlebench.sandbox.relay import PARENT_PIPE

IMAGE = "mlebench-env"
PREFIX = "mlebench-"
VARIABLES = 101  # the descriptor that carries the environment
IDENTITY = "mlebench.agent"  # the label of an agent's image that identifies the files it was built from
SYSBOX = "sysbox-runc"  # its containers have 65536 users
EXIT_CODE = '{{if or (eq .State.Status "exited") (eq .State.Status "stopped")}}{{.State.ExitCode}}{{end}}'
FILL_SECONDS = 1800
FILLED = f"{PROXIES}/home"
# Runs in the task's image. Files that we put there take precedence over the image's.
FILL = f"""
import os, shutil
for entry in os.scandir("{HOME}"):
    there = os.path.join("{FILLED}", entry.name)
    if entry.name == "data" or os.path.isfile(there):
        continue
    if entry.is_dir(follow_symlinks=False):
        shutil.copytree(entry.path, there, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(entry.path, there, follow_symlinks=False)
"""


class Docker(Sandbox):
    name = "docker"  # also the name of the program
    runs_images = True
    takes_runtimes = True
    nothing = "type=tmpfs"

    def fault(self, task: Task | None = None) -> str | None:
        if fault := self.engine_fault() or self._image_fault(task):
            return fault
        if task and task.runtime and task.runtime not in (known := _runtimes()):
            return f"this Docker engine has no runtime {task.runtime!r}; it has {', '.join(known)}"
        if task and (odd := [name for name, value in task.env.items() if "\n" in value]):
            return f"{self.name} cannot pass on a variable with several lines: {odd[0]}"
        return None

    def launch(self, task: Task) -> Launch:
        user = os.geteuid()
        if user == 0:
            user = INNER_UID if task.runtime == SYSBOX else FIRST_UID + os.getpid()
            chown_tree(task.work, user)
        if task.own_image:
            self._fill_home(task, user)
        name = f"{PREFIX}{task.name}"
        command = [self.name, *_run(task, name, user), "--interactive", "--log-driver", "none"]
        command += [*_limits(task), *self.more(), *self.network(task), *self.gpus(task), *_seal(task)]
        command += [*self._masks(task), *_binds(task)]
        command += ["--env-file", f"/dev/fd/{VARIABLES}"]
        variables = "".join(f"{name}={value}\n" for name, value in task.env.items())
        return Launch(
            argv=(*command, *self.program(task)),
            env=dict(os.environ),  # for the client, on the host
            # On the command line, any user of the host could read them.
            files={VARIABLES: variables.encode()},
            stop_commands=((self.name, "kill", name),),
            health_check=(self.name, "top", name),
            oom_query=(self.name, "inspect", "--format", "{{.State.OOMKilled}}", name),
            cleanup_commands=() if task.retain else ((self.name, "rm", "--force", "--volumes", name),),
            exit_code_query=(self.name, "inspect", "--format", EXIT_CODE, name),
            pid_query=(self.name, "inspect", "--format", "{{.State.Pid}}", name),
            parent_pipe=True,
            writable=(str(task.home), str(task.work / "tmp")),
            cgroup=False,
        )

    def conditions(self, task: Task) -> dict[str, Any]:
        image = task.image or IMAGE
        facts = image_of(self.name, image) or {}
        return {
            "version": f"{self.name} {self.version()}".strip(),
            "image": image,
            "image_id": facts.get("Id"),
            "image_digests": facts.get("RepoDigests") or [],
            **({"runtime": task.runtime} if task.runtime else {}),
        }

    def remove_leftovers(self, name: str) -> None:
        for container in (f"{PREFIX}{name}", f"{PREFIX}{name}-home"):  # not together: podman fails if one is missing
            ask(self.name, "rm", "--force", "--volumes", container)

    def search_path(self, image: str | None) -> list[str]:
        facts = image_of(self.name, image or IMAGE)
        variables = dict(text.split("=", 1) for text in (facts["Config"]["Env"] if facts else None) or [])
        return variables.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")

    def _image_fault(self, task: Task | None) -> str | None:
        image = task.image if task and task.image else IMAGE
        own = task.own_image if task else None
        facts = image_of(self.name, image)
        build = f"`{own.build if own else 'mlebench image build'}`"
        if facts is None:
            return self.missing_image(image, build)
        if own and own.identity and (facts["Config"]["Labels"] or {}).get(IDENTITY) != own.identity:
            return f"the image {image} was not built from the agent's folder as it is now: build it with {build}"
        return None

    def _masks(self, task: Task) -> list[str]:
        """Cover hidden paths with nothing. The cover has the mode of what it hides, so it must be read-only."""
        arguments = []
        for target, folder in paths_to_hide(task.hidden, [(bind.source, bind.target) for bind in task.binds]).items():
            hide = self.nothing if folder else "type=bind,source=/dev/null"
            arguments += ["--mount", f'{hide},ro,"target={target}"']
        return arguments

    def _fill_home(self, task: Task, user: int) -> None:
        """Copy what the image has in /home, which the task's own folder will hide: a Dockerfile may put files there."""
        mount = f'type=bind,"source={task.home}","target={FILLED}"'
        seal = ["--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]
        command = [*_run(task, f"{PREFIX}{task.name}-home", user), "--rm", *self.more(), *seal, "--mount", mount]
        image = task.image or IMAGE
        program = ["--entrypoint", "python3", image, "-I", "-S", "-c", FILL]
        done = ask(self.name, *command, *program, seconds=FILL_SECONDS)
        if done is None or done.returncode != 0:
            raise SandboxError(f"what the image {image} has in {HOME} cannot be copied: {reason_in(done)[-500:]}")

    # What differs between engines.

    def program(self, task: Task) -> list[str]:
        return through_relay(task)

    def engine_fault(self) -> str | None:
        return _engine_fault()

    def missing_image(self, image: str, build: str) -> str:
        return f"there is no image {image}: build it with {build}, or name one with --image"

    def version(self) -> str:
        return _engine_version()

    def more(self) -> list[str]:
        return []

    def network(self, task: Task) -> list[str]:
        return ["--network", "bridge" if task.network == "full" else "none"]

    def gpus(self, task: Task) -> list[str]:
        return ["--gpus", f'"device={",".join(task.gpus)}"'] if task.gpus else []


def image_id(name: str) -> str | None:
    """The id of a docker image; None if there is none of that name."""
    facts = image_of("docker", name)
    return None if facts is None else facts["Id"]


def _run(task: Task, name: str, user: int) -> list[str]:
    runtime = ["--runtime", task.runtime] if task.runtime else []
    # An engine may be set to start a first process of its own, which a program could trace.
    return ["run", "--pull", "never", "--init=false", "--name", name, "--user", f"{user}:{user}", *runtime]


def _limits(task: Task) -> list[str]:
    limits = task.limits
    return [
        *(["--memory", str(limits.memory), "--memory-swap", str(limits.memory)] if limits.memory else []),
        *(["--cpus", f"{limits.cpus:g}"] if limits.cpus else []),
        *("--pids-limit", str(limits.processes), "--shm-size", str(limits.shm)),
        *(["--ulimit", f"fsize={limits.disk}"] if limits.disk else []),
        *("--ulimit", "core=0"),
    ]


def _seal(task: Task) -> list[str]:
    arguments = ["--hostname", "sandbox"]
    if not task.own_image:  # whose Dockerfile says where to start
        arguments += ["--workdir", HOME]
    if task.privileged:
        return [*arguments, "--privileged"]
    return [*arguments, "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]


def _binds(task: Task) -> list[str]:
    binds = [(task.home, HOME, True), (task.work / "tmp", "/tmp", True), (task.work / "tmp", "/var/tmp", True)]  # noqa: S108
    binds += [*_open_root(task), *((bind.source, bind.target, bind.writable) for bind in task.binds)]
    binds += [(socket, f"{PROXIES}/{proxy}.sock", False) for proxy, socket in task.proxies.items()]
    binds.append((RELAY, f"{PROXIES}/{RELAY.name}", False))
    arguments = []
    for source, target, writable in binds:
        text = f'type=bind,"source={source}","target={target}"'
        arguments += ["--mount", text if writable else f"{text},readonly"]
    return arguments


def _open_root(task: Task) -> list[tuple[Path, str, bool]]:
    """Bind an open folder at /root if a venv's Python is there: images close /root to all but root."""
    inside = [bind.target.removeprefix("/root/") for bind in task.binds if bind.target.startswith("/root/")]
    for target in inside:
        (task.work / "root" / target).mkdir(parents=True, exist_ok=True)
    return [(task.work / "root", "/root", False)] if inside else []


def through_relay(task: Task, *options: str) -> list[str]:
    """Return the arguments for a program behind the relay.

    The relay comes from this host, so any image with Python will do.
    """
    ports = [f"{port}={PROXIES}/{proxy}.sock" for port, proxy in task.ports.items()]
    image = task.image or IMAGE
    relay = ["-I", "-S", f"{PROXIES}/{RELAY.name}", PARENT_PIPE, *options, *ports, "--"]
    return ["--entrypoint", "python3", image, *relay, *task.command]


@cache
def _engine_fault() -> str | None:
    if shutil.which("docker") is None:
        return "there is no `docker`: install Docker"
    done = ask("docker", "version", "--format", "{{.Server.Version}}")
    if done is None or done.returncode != 0:
        return f"the Docker engine cannot be reached ({reason_in(done)}): start it"
    return None


def reason_in(done: subprocess.CompletedProcess[str] | None) -> str:
    return "it does not answer" if done is None else (done.stderr.strip().splitlines() or ["it fails"])[-1]


def _runtimes() -> list[str]:
    return sorted(answer("docker", "info", "--format", "{{json .Runtimes}}") or [])


@cache
def _engine_version() -> str:
    done = ask("docker", "version", "--format", "{{.Server.Version}}")
    return done.stdout.strip() if done else ""


def image_of(engine: str, name: str) -> dict[str, Any] | None:
    """What an engine knows about an image; None if it has none of that name."""
    return (answer(engine, "image", "inspect", name) or [None])[0]


def answer(*command: str) -> Any:
    """A command's answer in JSON; None without one. When told to stop, podman says nothing and ends with 0."""
    done = ask(*command)
    return json.loads(done.stdout) if done and done.returncode == 0 and done.stdout else None


def ask(*command: str, seconds: float = 60) -> subprocess.CompletedProcess[str] | None:
    """The answer to an engine command; None without one."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
