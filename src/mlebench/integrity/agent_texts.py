"""What an agent wrote and what it saw, as texts that detectors can search. All of it is hostile, and bounded.

What a text *is* decides what it can prove. Code and commands were meant to be executed; a log also holds what
programs printed and what files contained.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from mlebench.core.files import is_lfs_pointer
from mlebench.core.paths import model_calls, trajectory
from mlebench.core.untrusted import parse_json
from mlebench.integrity.notebooks import cells_of
from mlebench.integrity.subjects import AgentFile, Subject
from mlebench.records.timeline import lines_in, said
from mlebench.records.untrusted_lines import as_json

CODE, ACTION, MESSAGE, ANSWER, LOG = "code", "action", "message", "answer", "log"
DONE = (CODE, ACTION)  # what was executed, or meant to be
WRITTEN = (CODE, ACTION, MESSAGE, ANSWER)  # what the agent wrote itself

MOST_OF_A_FILE = 8 << 20  # bytes
MOST_IN_ALL = 32 << 20
_LOOKED_AT = 8192  # bytes, to tell text from binary
_DATA = {".csv", ".tsv", ".json", ".parquet", ".feather", ".npy", ".npz", ".pkl", ".pt", ".pth", ".zip", ".gz"}
_PROSE = {".md", ".txt", ".log", ".out", ".err", ".html", ".jsonl"}
_PROGRAMS = {".py", ".sh", ".bash", ".r", ".jl", ".js", ".ts", ".sql", ".c", ".cpp", ".java", ".go", ".rs", ".pl"}


@dataclass(frozen=True)
class AgentText:
    file: str  # its name for readers
    kind: str
    text: str
    line: int | None = None  # in the file, if the whole text is on one

    def line_at(self, offset: int) -> int:
        return self.line or self.text.count("\n", 0, offset) + 1


@dataclass
class AgentTexts:
    """The texts of a subject, and what was left out."""

    found: list[AgentText] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)  # files that were not read to the end
    unread: list[str] = field(default_factory=list)  # files that are not text, or could not be read
    bad_lines: int = 0  # of trajectories and traces
    room: int = MOST_IN_ALL

    def of(self, *kinds: str) -> Iterator[AgentText]:
        return (text for text in self.found if text.kind in kinds)

    @property
    def is_whole(self) -> bool:
        return not self.cut and not self.bad_lines


def texts_of(subject: Subject) -> AgentTexts:
    texts = AgentTexts()
    has_gateway = subject.group is not None and subject.group.record.network == "model"
    trajectory_name, trace_name = (
        path_in(subject.run.paths.logs).name if subject.run else None for path_in in (trajectory, model_calls)
    )
    for source in sorted(subject.logs, key=lambda file: file.parts[-1:] != (trajectory_name,)):
        name = source.parts[-1] if source.parts else source.root.name
        if name == trajectory(source.root).name:
            _add_lines(texts, source, _told)
        elif has_gateway and source.parts[1:] == (trace_name,):  # otherwise a file of that name is the agent's own
            _add_lines(texts, source, lambda call: (ANSWER, said(call.get("answer"))))
        else:
            _add(texts, source, CODE if _suffix(source) in _PROGRAMS else LOG)
    for source in subject.code:
        _add(texts, source, LOG if _suffix(source) in _PROSE else CODE)
    return texts


def _suffix(source: AgentFile) -> str:
    return PurePosixPath(source.name).suffix.lower()


def _read(texts: AgentTexts, source: AgentFile) -> bytes:
    if texts.room <= 0:
        texts.cut.append(source.name)
        return b""
    limit = min(MOST_OF_A_FILE, texts.room)
    data = source.read(limit + 1)
    if len(data) > limit:
        texts.cut.append(source.name)
        data = data[:limit]
    texts.room -= len(data)
    return data


def _add(texts: AgentTexts, source: AgentFile, kind: str) -> None:
    if _suffix(source) in _DATA:
        return
    data = _read(texts, source)
    if b"\0" in data[:_LOOKED_AT] or is_lfs_pointer(data):
        texts.unread.append(source.name)
    elif _suffix(source) == ".ipynb":
        texts.found += _cells(source.name, data) or [AgentText(source.name, LOG, data.decode("utf-8", "replace"))]
    elif data:
        texts.found.append(AgentText(source.name, kind, data.decode("utf-8", "replace")))


def _cells(name: str, data: bytes) -> list[AgentText]:
    """The code of a notebook, cell by cell; nothing if it is broken. Cell outputs are not part of the program."""
    try:
        cells = list(cells_of(parse_json(data)))
    except ValueError:
        return []
    return [AgentText(f"{name}, cell {cell.number}", CODE if cell.is_code else MESSAGE, cell.source) for cell in cells]


def _add_lines(texts: AgentTexts, source: AgentFile, text_of: Any) -> None:
    for number, line in lines_in(_read(texts, source)):
        if line is None:
            texts.bad_lines += 1
            continue
        try:
            kind, text = text_of(line)
        except RecursionError:
            texts.bad_lines += 1
            continue
        if text:
            texts.found.append(AgentText(source.name, kind, text, number))


def _told(line: dict[str, Any]) -> tuple[str, str]:
    """A line of a trajectory. Anything not known to be the agent's own words may be something it was shown."""
    kind = {"thought": MESSAGE, "action": ACTION}.get(str(line.get("kind")), LOG)
    value = line.get("text")
    if kind == LOG and value is None:
        return kind, as_json(line)
    return kind, value if isinstance(value, str) else as_json(value)
