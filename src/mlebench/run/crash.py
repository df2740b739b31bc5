"""What an agent printed last before it failed, for the one line that says how its run ended."""

import os
import re
from dataclasses import replace
from pathlib import Path

from mlebench.core.outcomes import AGENT_ERROR
from mlebench.core.paths import RUN_LOG
from mlebench.core.tracebacks import last_raised
from mlebench.core.untrusted import ANY_SIZE, UntrustedFileError, open_untrusted, plain
from mlebench.sandbox.session import TaskOutcome

TAIL = 64 << 10  # bytes of the log
LONGEST = 300  # characters of a line
LAST_LINES = 30  # a traceback further up did not end the program


def with_last_words(outcome: TaskOutcome, work: Path) -> TaskOutcome:
    """The outcome; if the agent failed, with the last line of its traceback or else of its log."""
    words = last_words(work / RUN_LOG) if outcome.ended == AGENT_ERROR else None
    return replace(outcome, detail=f"{outcome.detail}: {words}") if words else outcome


def last_words(log: Path) -> str | None:
    try:
        with open_untrusted(log, ANY_SIZE) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            text = file.read(TAIL).decode("utf-8", "replace")
    except (UntrustedFileError, OSError):
        return None
    lines = [shown for line in re.split(r"[\r\n]", text) if (shown := plain(line[: 4 * LONGEST])[:LONGEST].rstrip())]
    raised = last_raised(lines)
    if raised and len(lines) - raised.line <= LAST_LINES:
        return raised.text.strip()
    return lines[-1].strip() if lines else None
