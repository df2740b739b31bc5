"""What agents print, as lines that can be searched and shown: bounded, without escape codes and control characters."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from mlebench.core.paths import RUN_LOG
from mlebench.core.untrusted import plain
from mlebench.integrity.subjects import AgentFile

HEAD, TAIL = 64 << 10, 256 << 10  # bytes of a log that are read
MOST_LOGS = 20
LONGEST_LINE = 1000  # characters
SUFFIXES = (".log", ".txt", ".out", ".err", "")


def lines_of(source: AgentFile) -> list[str]:
    """A log's first and last lines. Text overwritten after a carriage return, as by bars, is a separate line."""
    head, tail = source.ends(HEAD, TAIL)
    return [*_lines(head), *_lines(tail)]


def _lines(content: bytes) -> Iterator[str]:
    for line in re.split(r"[\r\n]", content.decode("utf-8", "replace")):
        if shown := plain(line[: 4 * LONGEST_LINE])[:LONGEST_LINE].rstrip():
            yield shown


def logs_in_order(sources: Iterable[AgentFile]) -> list[AgentFile]:
    """Printed output first, then other logs by name, up to a maximum."""
    logs = [source for source in sources if PurePath(source.name).suffix.lower() in SUFFIXES]
    return sorted(logs, key=lambda source: (source.name != RUN_LOG, source.name))[:MOST_LOGS]
