"""Leases: which process works on a run, a competition's data or a venv. If two try, only one holds the lease.

A lost lease is noticed before its holder does harm.

`leases/<n>.json` is created exclusively, and the highest number holds. So taking a lease over means creating the next
number, which only one process can do; no number is used twice, and no process overwrites what another wrote. A holder
that is done marks its file as released. While it works, it increments a counter there. On the same host, a holder is
alive while its process is. From another host, it is dead once the counter has not moved for `EXPIRY` seconds on the
observer's own monotonic clock: the clocks of two hosts are never compared. A holder that could not increment its
counter for `GIVE_UP` seconds considers the lease lost, well before another may take over. Work that computes for
minutes without a pause gets more `patience`, a factor on these times. Nothing here needs `flock`, which on some shared
disks only locks out processes of the same host.

A disk may refuse to record a release: it is full, or does not answer. The file then still names a living process, which
nobody on its host would ever take for dead, not even that process itself. So each process remembers which of its own
leases it has given up. It remembers their tokens, not their folders: another thread may hold the same folder by now.
"""

import contextlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import rewrite
from mlebench.core.processes import Process

EXPIRY = 60.0
GIVE_UP = 40.0
RENEWAL = 5.0
PATIENCE = 10  # for processes that prepare data or make a venv

logger = logging.getLogger(__name__)

_given_up: set[str] = set()  # tokens of leases that this process gave up although the disk may not say so


class LeaseLostError(Exception):
    """Another process may be working on this run by now; nothing may be published."""


class Lease:
    """A lease that this process holds."""

    def __init__(self, folder: Path, number: int, clock: Callable[[], float] = time.monotonic, patience: float = 1):
        self._folder = folder
        self._give_up = GIVE_UP * patience
        self.number = number
        self._clock = clock
        self._counter = 0
        self._renewed = clock()
        self.token = secrets.token_hex(8)
        self._holder = Process.current()
        self._is_given_up = False

    @property
    def _path(self) -> Path:
        return self._folder / f"{self.number}.json"

    def _content(self) -> str:
        return json.dumps({"token": self.token, "counter": self._counter, **asdict(self._holder)})

    def create(self) -> bool:
        """False if another process was quicker."""
        draft = self._folder / f"draft.{self.token}"
        draft.write_text(self._content(), encoding="utf-8")
        try:
            os.link(draft, self._path)  # whole or not at all, even if we are killed now
        except FileNotFoundError:  # the winner removes the drafts of others
            return False
        except FileExistsError:  # on a network disk, maybe our own link: the reply got lost, and the call was repeated
            return (_read(self._path) or {}).get("token") == self.token
        except OSError:
            return self._create_without_link()
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _create_without_link(self) -> bool:
        """For disks without hard links. If we are killed before it is written, others wait until it expires."""
        try:
            with self._path.open("x", encoding="utf-8") as file:
                file.write(self._content())
        except FileExistsError:
            return False
        return True

    @property
    def is_due(self) -> bool:
        return self._clock() - self._renewed >= RENEWAL

    def renew(self) -> None:
        """Show that we are alive; LeaseLostError if another process holds the lease, or may soon."""
        begun = self._clock()
        try:
            self._require()
            self._counter += 1
            rewrite(self._path, self._content())
            self._renewed = begun
        except OSError:
            if begun - self._renewed > self._give_up:
                raise LeaseLostError("the lease could not be renewed: the disk does not answer") from None

    def require(self) -> None:
        """LeaseLostError unless the lease is certainly still ours."""
        if self._clock() - self._renewed > self._give_up:
            raise LeaseLostError("the lease was not renewed in time")
        self._require()

    def reclaim(self) -> None:
        """Renew, however late; LeaseLostError if another process has taken over, or was about to."""
        late = self._clock() - self._renewed > self._give_up
        self.renew()
        if late:
            time.sleep(RENEWAL)  # another process may already be taking over
        self.require()

    def _require(self) -> None:
        if self._is_given_up:
            raise LeaseLostError("the lease was released")
        content = _read(self._path)
        if _highest(self._folder) != self.number or content is None or content.get("token") != self.token:
            raise LeaseLostError("another process has taken this run over")

    @contextlib.contextmanager
    def renewed(self) -> Iterator[None]:
        """Keep the lease during slow work; afterwards, `require` says whether it was kept."""
        done = threading.Event()

        def keep() -> None:
            with contextlib.suppress(LeaseLostError):
                while not done.wait(RENEWAL):
                    self.renew()

        renewer = threading.Thread(target=keep, daemon=True)
        renewer.start()
        try:
            yield
        finally:
            done.set()
            renewer.join()

    def release(self) -> None:
        """Give the lease up, whatever the disk says; a lost one already belongs to another process.

        If the release cannot be recorded, this process may still acquire the lease again. Other hosts wait until it
        has expired, other processes of this host until this one has ended.
        """
        _given_up.add(self.token)
        try:
            self._require()
            rewrite(self._path, json.dumps({"token": self.token, "released": True}))
        except LeaseLostError:
            pass
        except OSError as error:
            logger.warning(
                "%s could not be released (%s): others can take over once this process has ended",
                self._path,
                error.strerror,
            )
        finally:
            self._is_given_up = True


def acquire(
    folder: Path, *, wait: bool = True, clock: Callable[[], float] = time.monotonic, patience: float = 1
) -> Lease | None:
    """The lease of a run; None if another process holds it. `wait` for `EXPIRY` to judge a holder on another host."""
    folder.mkdir(exist_ok=True)
    number = _highest(folder)
    if number is not None and not _is_free(folder / f"{number}.json", EXPIRY * patience if wait else 0, clock):
        return None
    lease = Lease(folder, (number or 0) + 1, clock, patience)
    is_ours = False
    try:
        is_ours = lease.create() and _highest(folder) == lease.number  # others may have passed us meanwhile
    finally:
        if not is_ours:
            _given_up.add(lease.token)  # its file may be there all the same
    if not is_ours:
        return None
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):  # earlier leases, and remains of those whose process was killed
            number = entry.name.partition(".")[0]
            if not number.isdigit() or int(number) < lease.number:
                Path(entry).unlink(missing_ok=True)
    return lease


@contextlib.contextmanager
def held(
    folder: Path, waiting: Callable[[], None] = lambda: None, *, patience: float = PATIENCE
) -> Iterator[Callable[[], None]]:
    """Wait for a lease, and hold it during work that may compute for minutes without a pause.

    A process that computes for longer than `patience` allows, on a disk shared with other hosts, may be overtaken. So
    call the yielded function before publishing anything: it raises unless the lease is certainly still ours.
    """
    lease = acquire(folder, wait=False, patience=patience)
    if lease is None:
        waiting()
    while lease is None:
        time.sleep(0.1)
        lease = acquire(folder, patience=patience)

    def require() -> None:
        try:
            lease.reclaim()
        except LeaseLostError:
            raise PrerequisiteError(
                f"this process was suspended for so long that another has taken over ({folder} says who): what it "
                "made was not published; run the command again"
            ) from None

    try:
        with lease.renewed():
            yield require
    finally:
        lease.release()


def holder(folder: Path) -> Process | None:
    """The process that holds a lease, dead or alive; None if there is none."""
    number = _highest(folder)
    content = None if number is None else _read(folder / f"{number}.json")
    return _holder_in(content) if content else None


def may_be_held(folder: Path) -> bool:
    """False if certainly nobody works here: the lease was released, or its holder was on this host and is dead."""
    number = _highest(folder)
    content = None if number is None else _read(folder / f"{number}.json")
    return number is not None and not (content and _is_abandoned(content))


class Observer:
    """Tells when a lease of another host has expired, by looking now and then: nobody has to wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._seen: dict[Path, tuple[tuple[int, Any], float]] = {}

    def is_held(self, folder: Path) -> bool:
        """Whether another process holds a lease. One that has expired is released here, so that all can take it."""
        number = _highest(folder)
        content = {} if number is None else _read(folder / f"{number}.json")
        if number is None or content is None:  # none yet, or another process is taking over
            return number is not None
        abandoned = _is_abandoned(content, _given_up)
        if abandoned is not None:
            return not abandoned
        state, now = (number, content.get("counter")), self._clock()
        before, since = self._seen.setdefault(folder, (state, now))
        if before != state:
            self._seen[folder] = state, now
        elif now - since >= EXPIRY:
            return not _retire(folder, number)
        return True


def _retire(folder: Path, number: int) -> bool:
    """Follow an expired lease with one that is released at once; False if another process was quicker."""
    lease = Lease(folder, number + 1)
    is_ours = lease.create() and _highest(folder) == lease.number
    lease.release()
    return is_ours


def _is_abandoned(content: dict[str, Any], given_up: Collection[str] = ()) -> bool | None:
    """Whether nobody works under a lease any more; None if only its counter can tell: it is of another host."""
    if content.get("released") or str(content.get("token")) in given_up:
        return True
    process = _holder_in(content)
    return None if process is None or not process.is_here else not process.is_alive


def _is_free(path: Path, expiry: float, clock: Callable[[], float]) -> bool:
    """Whether a lease may be taken over: not one that has vanished because another process took it over, nor one on
    another host if there is no time to watch it."""
    begun, seen = clock(), _read(path)
    if seen is None:
        return False
    abandoned = _is_abandoned(seen, _given_up)
    if abandoned is None:
        return expiry > 0 and _stands_still(path, seen.get("counter"), begun + expiry, clock)
    return abandoned


def _stands_still(path: Path, counter: Any, until: float, clock: Callable[[], float]) -> bool:
    while clock() < until:
        time.sleep(min(1.0, EXPIRY / 20))
        content = _read(path)
        if content is not None and content.get("released"):
            return True
        if content is None or content.get("counter") != counter:
            return False
    return True


def _holder_in(content: dict[str, Any]) -> Process | None:
    match content:
        case {"host": str(host), "pid": int(pid), "started": int(started)}:
            return Process(host, pid, started)
    return None


def _read(path: Path) -> dict[str, Any] | None:
    """What a lease says: None if it does not exist, empty if a power cut has corrupted it."""
    for _ in range(2):  # a network disk may show a replaced file cut short, but not twice
        try:
            content = json.loads(path.read_bytes())
        except OSError:
            return None
        except ValueError:
            continue
        return content if isinstance(content, dict) else {}
    return {}


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(entry.name[:-5]) for entry in os.scandir(folder) if entry.name[:-5].isdigit()]
    except FileNotFoundError:
        return []


def _highest(folder: Path) -> int | None:
    return max(_numbers(folder), default=None)
