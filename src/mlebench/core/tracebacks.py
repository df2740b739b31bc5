"""The exceptions that end a program, found in its output: plain, in colour, from notebooks, from several processes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

HEADER = "Traceback (most recent call last)"
LONGEST_MESSAGE = 16  # lines
MOST_PREFIXES = 8
MOST_FRAMES = 400  # lines from a header to its exception
# Exceptions without a header: the lines before them quote the file with the syntax error.
SYNTAX = ("SyntaxError", "IndentationError", "TabError")
# What a program raises when another one, which has already said why, failed.
WRAPPERS = (
    *("CalledProcessError", "ChildFailedError", "ProcessRaisedException", "ProcessExitedException"),
    *("RayTaskError", "RayActorError", "CellExecutionError", "PapermillExecutionError"),
)
LINKS = ("The above exception was the direct cause", "During handling of the above exception")

# Whose line it is, where several processes write: `[rank1]: `, `(Actor pid=123) `, `worker-3 | `.
_PREFIX = re.compile(r"(?:\[\w{1,30}\]:? |\([\w= .:,]{1,80}\) |\w[\w-]{0,30} \| )")
# `KeyError`, `socket.gaierror`; neither `INFO: …` nor `loss: 0.3`, which another process may print in between.
_MODULE = r"(?:[A-Za-z_]\w{0,80}\.)"
_NAME = r"(?:Exception|_{0,2}[A-Z][a-z]{1,60}[A-Z]\w{0,80}|[A-Z]{2,20}[a-z]\w{0,60})"
_EXCEPTION = re.compile(rf"({_MODULE}{{1,10}}\w{{1,160}}|{_NAME})(?:\(\w{{1,80}}\))?(?:: (.*)|:? *)")


@dataclass(frozen=True)
class RaisedError:
    """An exception: its name without the module, its message, its line, and where a chain of them began."""

    name: str
    message: str
    line: int
    text: str  # the line itself
    origin: "RaisedError | None" = None


def last_raised(lines: Sequence[str]) -> RaisedError | None:
    """The exception that was shown last."""
    raised: RaisedError | None = None
    linked = False
    header = -1
    prefixes: list[str] = []
    for number, full_line in enumerate(lines):
        line = _without_prefix(full_line, prefixes)
        if HEADER in line:
            header = number
            if (prefix := full_line.partition(HEADER)[0]) and prefix not in prefixes:
                prefixes = [prefix, *prefixes[: MOST_PREFIXES - 1]]
        elif line.startswith(LINKS):
            linked = raised is not None
        elif (header >= 0 or line.startswith(SYNTAX)) and (match := _EXCEPTION.fullmatch(line)):
            if header < 0 and not _names_a_file(lines[max(0, number - 6) : number]):
                continue
            made = RaisedError(match[1].rpartition(".")[2], _message(lines, number, match[2] or ""), number, full_line)
            if raised and (linked or made.name in WRAPPERS):
                made = replace(made, origin=raised.origin or raised)
            raised = made
            linked, header = False, -1
        elif header >= 0 and number - header > MOST_FRAMES:
            header = -1
    return raised


def _without_prefix(line: str, prefixes: Sequence[str]) -> str:
    """Strip the prefix of a traceback's first line from its others, if it says which process wrote them."""
    known = next((prefix for prefix in prefixes if line.startswith(prefix)), None)
    if known is not None:
        return line[len(known) :]
    match = _PREFIX.match(line)
    return line[match.end() :] if match else line


def _names_a_file(lines: Sequence[str]) -> bool:
    return any('File "' in line or "Cell In[" in line for line in lines)


def _message(lines: Sequence[str], number: int, first: str) -> str:
    """The whole message, which may span lines; a few lines too many do no harm."""
    message_lines: list[str] = []
    for line in lines[number + 1 : number + LONGEST_MESSAGE]:
        if HEADER in line or line.startswith(LINKS):
            break
        message_lines.append(line)
    return "\n".join([first, *message_lines])
