"""Which prepared files need a closer look: with millions of files, several processes compare them with their list."""

import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mlebench.data.manifest import Span, files_in, joined, recorded_files, spans

Pair = tuple[str, dict[str, Any] | None, dict[str, Any] | None]  # a file's name, what is recorded and what is there

MOST_PARTS = 4  # each reads the folders at its bounds, which may hold most of the files
MOST_RETURNED = 10_000  # files of a part; more are compared here, one after the other, to save memory


def doubtful_files(prepared: Path, kept: frozenset[str], processes: int) -> Iterator[Pair]:
    """Compare the files with their list, and return the `doubtful` ones."""
    parts = spans(prepared, min(processes, MOST_PARTS))
    if len(parts) == 1:
        yield from _in_part(prepared, kept, parts[0])
        return
    context = get_context("spawn")  # a fork of a process with threads may hang
    # Ctrl-C reaches all processes: these end at once, and without a traceback each.
    with ProcessPoolExecutor(len(parts), context, signal.signal, (signal.SIGINT, signal.SIG_DFL)) as pool:
        work = partial(_few_in_part, prepared, kept, MOST_RETURNED)
        for part, some in zip(parts, pool.map(work, parts), strict=True):
            yield from _in_part(prepared, kept, part) if some is None else some


def _in_part(prepared: Path, kept: frozenset[str], part: Span) -> Iterator[Pair]:
    return doubtful(joined(recorded_files(prepared, part), files_in(prepared, part)), kept)


def _few_in_part(prepared: Path, kept: frozenset[str], most: int, part: Span) -> list[Pair] | None:
    some = list(islice(_in_part(prepared, kept, part), most + 1))
    return some if len(some) <= most else None


def doubtful(pairs: Iterable[Pair], kept: frozenset[str]) -> Iterator[Pair]:
    """Leave out files that size and time say are right, except those to be kept."""
    for pair in pairs:
        name, recorded, found = pair
        if not (recorded and found and _are_alike(recorded, found)) or name in kept:
            yield pair


def _are_alike(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    return (
        found["size"] == recorded["size"]
        and "fault" not in found
        and (recorded["mtime_ns"] == found["mtime_ns"] if "mtime_ns" in recorded else "md5" not in recorded)
    )
