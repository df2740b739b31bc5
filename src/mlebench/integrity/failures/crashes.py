"""Why a program ended, from what it printed last.

Logs are read as bounded lines that are safe to show, without escape codes and control characters.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mlebench.core.paths import RUN_LOG
from mlebench.core.tracebacks import RaisedError, last_raised
from mlebench.core.untrusted import plain
from mlebench.integrity.failures.rules import CAUSES, CODE, LAST_LINES, LAST_WORDS, LINES_AFTER_THE_END, SIGNALS
from mlebench.integrity.subjects import AgentFile
from mlebench.records.findings import Evidence

HEAD, TAIL = 64 << 10, 256 << 10  # bytes of a log that are read
MOST_LOGS = 20
LONGEST_LINE = 1000  # characters
SUFFIXES = (".log", ".txt", ".out", ".err", "")


@dataclass(frozen=True)
class Crash:
    cause: str
    says: str
    evidence: tuple[Evidence, ...] = ()


def find_crash(sources: Iterable[AgentFile], *, failed: bool, detail: str) -> Crash | None:
    """What crashed a program, if anything did. With exit code 0, only its last lines count."""
    for source in logs_in_order(sources):
        lines = lines_of(source)
        crashes = [*_by_traceback(lines, source), *_by_last_words(lines, source)]
        late = [(line, crash) for line, crash in crashes if failed or len(lines) - line <= LINES_AFTER_THE_END]
        if late:
            return max(late, key=lambda dated_crash: dated_crash[0])[1]
    ending = detail.partition(":")[0]  # what follows are words of the agent
    cause = next((cause for code, cause in SIGNALS.items() if ending.endswith(code)), None)
    return Crash(cause, detail) if cause else None


def _by_traceback(lines: Sequence[str], source: AgentFile) -> Iterator[tuple[int, Crash]]:
    if raised := last_raised(lines):
        cause = cause_of(raised)
        if cause is None and raised.origin:  # it wraps another exception
            cause = cause_of(raised.origin)
        exceptions = [raised, *([raised.origin] if raised.origin else [])]
        says = raised.text if cause == cause_of(raised) else f"{raised.text}, from {exceptions[-1].text}"
        yield (
            raised.line,
            Crash(cause or CODE, says, tuple(Evidence(source.name, exception.text) for exception in exceptions)),
        )


def _by_last_words(lines: Sequence[str], source: AgentFile) -> Iterator[tuple[int, Crash]]:
    for number in range(len(lines) - 1, max(-1, len(lines) - 1 - LAST_LINES), -1):
        for cause, patterns in LAST_WORDS:
            if any(re.search(pattern, lines[number]) for pattern in patterns):
                yield number, Crash(cause, lines[number], (Evidence(source.name, lines[number]),))
                return


def cause_of(raised: RaisedError) -> str | None:
    """The cause that the message's first line shows, or else all of it."""
    for message in (raised.message.partition("\n")[0], raised.message):
        for cause in CAUSES:
            if cause.fits(raised.name, message):
                return cause.cause
    return None


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
