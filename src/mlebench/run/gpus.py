"""Which GPUs a run gets, and how no two runs on this machine get the same one, whoever started them.

Holding a GPU means having a unix socket open that is bound to an abstract name made from the GPU's UUID. The kernel
gives a name to one socket at a time, and frees it when the last process that has the socket open has ended, however it
ended. So there is no file that another user could own, replace or leave behind. `run exec` and the keeper of its
sandbox both have the socket.
"""

import errno
import logging
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mlebench.errors import PrerequisiteError

logger = logging.getLogger(__name__)

HOLDERS_VARIABLE = "MLEBENCH_GPU_FDS"  # descriptors of the sockets that a runner hands to `run exec`
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
_LINE = re.compile(r"\s*(?:GPU (?P<index>\d+):|MIG ).*\(UUID: (?P<uuid>\S+)\)")


@dataclass(frozen=True)
class Choice:
    """The GPUs that a runner may use, and how many of them each run gets."""

    pool: tuple[str, ...] = ()
    share: int = 0


@dataclass(frozen=True)
class Held:
    """GPUs that nobody else gets as long as these descriptors are open in some process."""

    names: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def choose(text: str | None, workers: int) -> Choice:
    """What `--gpus` asks for: the GPUs it names are shared out evenly. By default, each run gets any one."""
    if text == "none":
        return Choice()
    if text is None or text == "all":
        pool = visible()
        return Choice(pool, len(pool) // workers if text else min(1, len(pool)))
    known = devices()
    pool = tuple(resolve(name) or name for name in text.split(","))
    if unknown := [name for name in pool if name not in known]:
        raise PrerequisiteError(f"there is no GPU {unknown[0]!r}; this machine has {', '.join(known) or 'none'}")
    uuids = [uuid for name in pool for uuid in known[name]]
    if len(set(uuids)) < len(uuids):
        raise PrerequisiteError(f"--gpus {text}: a GPU, or a part of it, is named twice")
    return Choice(pool, len(pool) // workers)


def choose_again(text: str | None, workers: int, share: int) -> Choice:
    """What runs planned earlier get, with `share` GPUs each."""
    if text is not None:
        return choose(text, workers)
    pool = visible() if share else ()
    if len(pool) < share:
        raise PrerequisiteError(
            f"each run of this group gets {share} GPUs, and this machine has {len(pool)}: name others with --gpus"
        )
    return Choice(pool, share)


def visible() -> tuple[str, ...]:
    """The GPUs that programs started here may use, as CUDA sees it: it ignores what follows an unknown name."""
    told = os.environ.get(VISIBLE_VARIABLE)
    if told is None:
        return tuple(name for name in devices() if name.isdigit())
    found: list[str] = []
    for name in map(resolve, told.split(",")):
        if name is None:
            break
        found.append(name)
    return tuple(dict.fromkeys(found))


def resolve(name: str) -> str | None:
    """A GPU's index or a MIG device's UUID, by any name that CUDA takes: an index, a UUID or the beginning of one."""
    name = name.strip()
    if name in devices():
        return name
    named = [key for key, (uuid, *_) in devices().items() if name[:4] in ("GPU-", "MIG-") and uuid.startswith(name)]
    return named[0] if len(named) == 1 else None


@cache
def devices() -> dict[str, tuple[str, ...]]:
    """This machine's GPUs by index, and MIG devices by UUID, each with its UUID and those of its parts."""
    found: dict[str, tuple[str, ...]] = {}
    whole = ""
    for match in filter(None, map(_LINE.match, _listed())):
        index, uuid = match["index"], match["uuid"]
        found[index or uuid] = (uuid,)
        if index:
            whole = index
        else:
            found[whole] += (uuid,)
    return found


def _listed() -> list[str]:
    """What nvidia-smi lists. Where it fails, runs would get no GPU, and nobody would know why."""
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S607
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("No GPUs are used: nvidia-smi does not answer (%s)", error)
        return []
    if done.returncode:
        told = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
        logger.warning("Only GPUs that nvidia-smi lists are used, and it failed: %s", told[-1])
    return done.stdout.splitlines()


def take(choice: Choice) -> Held | None:
    """As many free GPUs as a run gets; None if there are too few."""
    held = Held()
    for name in choice.pool:
        if len(held.names) == choice.share:
            break
        held = _add(held, name) or held
    if len(held.names) == choice.share:
        return held
    held.close()  # whoever waits holds nothing, so no two runners wait for each other
    return None


def assigned(names: Sequence[str]) -> Held:
    """GPUs that `run exec` was told to use. A runner also hands over its hold on them.

    A scheduler does not, and its word is final. So they are held without waiting, where they are free: then runners on
    this machine that know nothing of the scheduler stay away from them.
    """
    if handed := os.environ.pop(HOLDERS_VARIABLE, None):
        descriptors = tuple(map(int, handed.split(",")))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return Held(tuple(names), descriptors)
    held = Held()
    for name in (resolve(name) or name for name in names):
        known = name in devices()  # a scheduler may simulate GPUs
        more = _add(held, name) if known else None
        if known and more is None:
            logger.warning("GPU %s, which this run was assigned, is held by another run on this machine", name)
        held = more or Held((*held.names, name), held.descriptors)
    return held


def _add(held: Held, name: str) -> Held | None:
    """The same and one more GPU; None if another process has it, or a part of it."""
    descriptors: list[int] = []
    for uuid in devices()[name]:
        descriptor = _bind(uuid)
        if descriptor is None:
            Held(descriptors=tuple(descriptors)).close()
            return None
        descriptors.append(descriptor)
    return Held((*held.names, name), (*held.descriptors, *descriptors))


def _bind(uuid: str) -> int | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0mlebench-gpu-{uuid}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder.detach()
