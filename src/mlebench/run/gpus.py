"""Which GPUs a run gets, and how no two runs on this machine get the same one, whoever started them.

Holding a GPU means having a unix socket open that is bound to an abstract name made from the GPU's UUID. The kernel
gives a name to one socket at a time, and frees it when the last process that has the socket open has ended, however it
ended. So there is no file that another user could own, replace or leave behind. `run exec` and the supervisor of its
sandbox both have the socket. Where several runs share a GPU, each holds one of its slots in the same way.
"""

import errno
import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from mlebench.core.errors import PrerequisiteError
from mlebench.run.hardware import nvidia_smi

logger = logging.getLogger(__name__)

HOLDERS_VARIABLE = "MLEBENCH_GPU_FDS"  # descriptors of the sockets that a runner hands to `run exec`
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
MOST_RUNS_PER_GPU = 16
_TURN = 2.0  # seconds to wait while other runners look for a slot, which takes them milliseconds
_LINE = re.compile(r"\s*(?:GPU (?P<index>\d+):|MIG ).*\(UUID: (?P<uuid>\S+)\)")


@dataclass(frozen=True)
class GpuPool:
    """The GPUs that a runner may use, and how many of them each run gets."""

    names: tuple[str, ...] = ()
    share: int = 0
    runs_per_gpu: int = 1


@dataclass(frozen=True)
class GpuLease:
    """GPUs that nobody else gets as long as these descriptors are open in some process."""

    names: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def choose(text: str | None, workers: int, runs_per_gpu: int = 1) -> GpuPool:
    """What `--gpus` asks for: the GPUs it names are shared out evenly. By default, each run gets any one.

    With several runs on each GPU, a run gets one.
    """
    pool = () if text == "none" else visible() if text in (None, "all") else _named(text)
    if text == "all" and not pool:
        hidden = f"{VISIBLE_VARIABLE} hides those of this machine" if devices() else "this machine has none"
        raise PrerequisiteError(
            f"all GPUs are asked for, but {hidden}: leave out --gpus, or `gpus` in --container-config, to run without"
        )
    if runs_per_gpu > 1:
        if not pool:
            raise PrerequisiteError(f"--runs-per-gpu {runs_per_gpu}: these runs get no GPU; leave it out, or give 1")
        return GpuPool(pool, 1, runs_per_gpu)
    return GpuPool(pool, min(1, len(pool)) if text is None else len(pool) // workers)


def _named(text: str) -> tuple[str, ...]:
    known = devices()
    pool = tuple(resolve(name) or name for name in text.split(","))
    if unknown := [name for name in pool if name not in known]:
        have = f"{'GPU' if len(known) == 1 else 'GPUs'} {', '.join(known)}" if known else "no GPU"
        raise PrerequisiteError(f"there is no GPU {unknown[0]!r}: this machine has {have}")
    uuids = [uuid for name in pool for uuid in known[name]]
    if len(set(uuids)) < len(uuids):
        raise PrerequisiteError(f"--gpus {text}: a GPU, or a part of it, is named twice")
    return pool


def choose_again(text: str | None, workers: int, share: int, runs_per_gpu: int = 1) -> GpuPool:
    """What runs planned earlier get, with `share` GPUs each."""
    if text is not None:
        return choose(text, workers, runs_per_gpu)
    pool = visible() if share else ()
    if len(pool) < share:
        raise PrerequisiteError(
            f"each run of this group gets {_gpus(share)}, and this machine has {len(pool)}: name others with --gpus"
        )
    return GpuPool(pool, share, runs_per_gpu)


def refuse_crowd(pool: GpuPool, workers: int) -> None:
    """Refuse more workers than the GPUs have room for."""
    have = len(pool.names)
    if not have or max(1, pool.share) * workers <= have * pool.runs_per_gpu:
        return
    crowd = -(-workers // have)
    more = f", or put {crowd} runs on each GPU with --runs-per-gpu {crowd}" if crowd <= MOST_RUNS_PER_GPU else ""
    crowding = f" at {pool.runs_per_gpu} runs on each" if pool.runs_per_gpu > 1 else ""
    raise PrerequisiteError(f"{workers} workers cannot share {_gpus(have)}{crowding}: use fewer workers{more}")


def _gpus(number: int) -> str:
    return f"{number} GPU{'s' * (number != 1)}"


def visible() -> tuple[str, ...]:
    """The GPUs that programs started here may use, as CUDA sees it: it ignores what follows an unknown name."""
    variable = os.environ.get(VISIBLE_VARIABLE)
    if variable is None:
        return tuple(name for name in devices() if name.isdigit())
    names: list[str] = []
    for name in map(resolve, variable.split(",")):
        if name is None:
            break
        names.append(name)
    return tuple(dict.fromkeys(names))


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
    uuids: dict[str, tuple[str, ...]] = {}
    gpu = ""
    for match in filter(None, map(_LINE.match, _listed())):
        index, uuid = match["index"], match["uuid"]
        uuids[index or uuid] = (uuid,)
        if index:
            gpu = index
        else:
            uuids[gpu] += (uuid,)
    return uuids


def _listed() -> list[str]:
    """What nvidia-smi lists. Where it fails, runs would get no GPU, and nobody would know why."""
    lines, fault = nvidia_smi("-L")
    if fault:
        logger.warning("Only GPUs that nvidia-smi lists are used, and it failed: %s", fault)
    return lines


def take(pool: GpuPool) -> GpuLease | None:
    """As many free GPUs as a run gets; None if there are too few. Runs that share GPUs are spread over all of them."""
    lease, names = GpuLease(), pool.names
    if pool.runs_per_gpu > 1:
        names = sorted(names, key=lambda name: _taken_slots(name, pool.runs_per_gpu))
    for name in names:
        if len(lease.names) == pool.share:
            break
        lease = _add(lease, name, pool.runs_per_gpu) or lease
    if len(lease.names) == pool.share:
        return lease
    lease.close()  # release everything before waiting, to avoid deadlock
    return None


def assigned(names: Sequence[str]) -> GpuLease:
    """GPUs that `run exec` was told to use. A runner also hands over its hold on them.

    A scheduler does not, and its word is final. So they are held without waiting, where they are free: then runners on
    this machine that know nothing of the scheduler stay away from them.
    """
    if handed := os.environ.pop(HOLDERS_VARIABLE, None):
        descriptors = tuple(map(int, handed.split(",")))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return GpuLease(tuple(names), descriptors)
    lease = GpuLease()
    for name in (resolve(name) or name for name in names):
        known = name in devices()  # a scheduler may simulate GPUs
        more = _add(lease, name, 1) if known else None
        if known and more is None:
            logger.warning("GPU %s, which this run was assigned, is held by another run on this machine", name)
        lease = more or GpuLease((*lease.names, name), lease.descriptors)
    return lease


def _add(lease: GpuLease, name: str, runs_per_gpu: int) -> GpuLease | None:
    """Return the lease with one more GPU; None if other processes have it, or a part of it."""
    descriptors: list[int] = []
    for uuid in devices()[name]:
        descriptor = _hold(uuid, runs_per_gpu)
        if descriptor is None:
            GpuLease(descriptors=tuple(descriptors)).close()
            return None
        descriptors.append(descriptor)
    return GpuLease((*lease.names, name), (*lease.descriptors, *descriptors))


def _hold(uuid: str, runs_per_gpu: int) -> int | None:
    """A slot of a GPU; None if all are taken, or if runs that share it among another number hold some.

    A run that promises at most two on its GPU would otherwise meet runs that allow four. Only one process at a time
    looks for a slot, so none sees a name that is bound just to find out whether it is free.
    """
    with _turn(uuid) as is_ours:
        slots = _slots(uuid, runs_per_gpu) if is_ours else ()
        descriptor = next((bound for slot in slots if (bound := _bind(slot)) is not None), None)
        sizes = [size for size in range(1, MOST_RUNS_PER_GPU + 1) if size != runs_per_gpu]
        if descriptor is not None and not all(_is_free(slot) for size in sizes for slot in _slots(uuid, size)):
            os.close(descriptor)
            return None
        return descriptor


def _taken_slots(name: str, runs_per_gpu: int) -> int:
    uuid = devices()[name][0]
    with _turn(uuid) as is_ours:
        return sum(not (is_ours and _is_free(slot)) for slot in _slots(uuid, runs_per_gpu))


def _slots(uuid: str, runs_per_gpu: int) -> list[str]:
    """The names of a GPU's slots; one that is not shared has its own name."""
    return [uuid] if runs_per_gpu == 1 else [f"{uuid}-{slot}-of-{runs_per_gpu}" for slot in range(1, runs_per_gpu + 1)]


@contextmanager
def _turn(uuid: str) -> Iterator[bool]:
    """Wait until no other process is looking for a slot of this GPU; False if that takes too long."""
    until = time.monotonic() + _TURN
    while (guard := _bind(f"{uuid}-turn")) is None and time.monotonic() < until:
        time.sleep(0.002)
    try:
        yield guard is not None
    finally:
        if guard is not None:
            os.close(guard)


def _is_free(name: str) -> bool:
    descriptor = _bind(name)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def _bind(name: str) -> int | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0mlebench-gpu-{name}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder.detach()
