"""The exceptions that end a program, found in what it printed: plain, in colour, of notebooks, of several processes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

HEADER = "Traceback (most recent call last)"
LONGEST_MESSAGE = 8  # lines
MOST_FRAMES = 400  # lines from a header to its exception
# Lines before an exception that has no header: the file with the wrong syntax.
SYNTAX = ("SyntaxError", "IndentationError", "TabError")
LINKS = ("The above exception was the direct cause", "During handling of the above exception")

# Whose line it is, where several processes write: `[rank1]: `, `(pid=123) `, `worker-3 | `.
_PREFIX = re.compile(r"(?:\[\w{1,30}\]:? |\([\w= .:]{1,60}\) |\w[\w-]{0,30} \| )")
# `KeyError`, `socket.gaierror`; neither `INFO: …` nor `loss: 0.3`, which another process may print meanwhile.
_MODULE = r"(?:[A-Za-z_]\w{0,80}\.)"
_NAME = r"(?:Exception|_{0,2}[A-Z][a-z]{1,60}[A-Z]\w{0,80}|[A-Z]{2,20}[a-z]\w{0,60})"
_EXCEPTION = re.compile(rf"({_MODULE}{{1,10}}\w{{1,160}}|{_NAME})(?:: (.*)|:?)")


@dataclass(frozen=True)
class Raised:
    """An exception: its name without the module, its message, its line, and where a chain of them began."""

    name: str
    message: str
    line: int
    text: str  # the line itself
    origin: "Raised | None" = None


def last_raised(lines: Sequence[str]) -> Raised | None:
    """The exception that was shown last."""
    found: Raised | None = None
    linked = False
    header = -1
    for number, whole in enumerate(lines):
        line = _without_prefix(whole)
        if HEADER in line:
            header = number
        elif line.startswith(LINKS):
            linked = found is not None
        elif (header >= 0 or line.startswith(SYNTAX)) and (match := _EXCEPTION.fullmatch(line)):
            if header < 0 and not _names_a_file(lines[max(0, number - 6) : number]):
                continue
            made = Raised(match[1].rpartition(".")[2], _message(lines, number, match[2] or ""), number, whole)
            found = replace(made, origin=found.origin or found) if linked and found else made
            linked, header = False, -1
        elif header >= 0 and number - header > MOST_FRAMES:
            header = -1
    return found


def _without_prefix(line: str) -> str:
    match = _PREFIX.match(line)
    return line[match.end() :] if match else line


def _names_a_file(lines: Sequence[str]) -> bool:
    return any('File "' in line or "Cell In[" in line for line in lines)


def _message(lines: Sequence[str], number: int, first: str) -> str:
    """Messages may go on for some lines; what follows the last of them does no harm."""
    rest: list[str] = []
    for line in lines[number + 1 : number + LONGEST_MESSAGE]:
        if HEADER in line or line.startswith(LINKS):
            break
        rest.append(line)
    return "\n".join([first, *rest])
