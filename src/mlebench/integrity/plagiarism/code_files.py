"""Fingerprints of many files: made in limited processes, some at a time, and cached for files that are read again."""

import hashlib
import io
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlebench.core import paths
from mlebench.core.files import replacing
from mlebench.core.isolate import Calls, IsolatedCallError
from mlebench.core.processes import cpu_count
from mlebench.integrity.isolated import inspect_isolated
from mlebench.integrity.plagiarism.programs import LARGEST_NOTEBOOK, NoCodeError, read_program, suffix_of
from mlebench.integrity.plagiarism.syntax_tokens import tokenize
from mlebench.integrity.plagiarism.winnowing import Fingerprints, fingerprint
from mlebench.integrity.subjects import AgentFile

AT_ONCE = 40  # files, in a process
SECONDS, MEMORY = 60, 2 << 30  # for AT_ONCE files
SECONDS_FOR_ONE, SECONDS_FOR_EACH = 20, 120  # if that was not enough: for one file, and for all of them
MAKING = 1  # increased when the same code gets different fingerprints, so that cached ones are ignored


@dataclass(frozen=True)
class CodeFile:
    """What came of reading a file."""

    source: AgentFile
    prints: Fingerprints
    fault: str | None = None  # completes "This file …"
    cut: bool = False

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def hashes(self) -> NDArray[np.uint64]:
        return self.prints.hashes


def read_all(sources: Iterable[AgentFile], keep: Path | None = None) -> list[CodeFile]:
    """Each file, in order. With a folder, fingerprints are kept there, under the hash of the file's content."""
    waiting = list(sources)
    batches = [waiting[begin : begin + AT_ONCE] for begin in range(0, len(waiting), AT_ONCE)]
    with Calls(cpu_count()) as calls:
        made = [calls.submit(_read_batch, batch, keep) for batch in batches]
        return [read for future in made for read in future.result()]


def _read_batch(sources: Sequence[AgentFile], keep: Path | None) -> list[CodeFile]:
    try:
        return inspect_isolated(_read_here, (sources, keep), seconds=SECONDS, memory=MEMORY)
    except IsolatedCallError:
        pass
    until = time.monotonic() + SECONDS_FOR_EACH  # one of them is to blame
    code_files = []
    for source in sources:
        try:
            if time.monotonic() > until:
                raise IsolatedCallError("others took too long")
            code_files += inspect_isolated(_read_here, ([source], keep), seconds=SECONDS_FOR_ONE, memory=MEMORY)
        except IsolatedCallError as error:
            code_files.append(_without_code(source, f"could not be parsed: {error}"))
    return code_files


def _read_here(sources_and_folder: tuple[Sequence[AgentFile], Path | None]) -> list[CodeFile]:
    sources, keep = sources_and_folder
    return [_read_kept(source, keep) if keep else _read(source) for source in sources]


def _read(source: AgentFile) -> CodeFile:
    try:
        program = read_program(source)
    except NoCodeError as error:
        return _without_code(source, str(error))
    prints = fingerprint(tokenize(program.text).values)
    return CodeFile(source, prints, None if len(prints.hashes) else "is too short to be compared", program.cut)


def _without_code(source: AgentFile, fault: str) -> CodeFile:
    return CodeFile(source, Fingerprints(np.empty(0, np.uint64), np.empty(0, np.int64)), fault)


def _read_kept(source: AgentFile, folder: Path) -> CodeFile:
    content = source.read(LARGEST_NOTEBOOK + 1)
    method = f"{MAKING} {version('tree-sitter-python')} {suffix_of(source.name)} "  # another grammar makes other tokens
    digest = hashlib.sha256(method.encode() + content).hexdigest()
    cached = paths.fingerprints(folder, digest)
    if (prints := _load(cached)) is not None:
        return CodeFile(source, prints)
    code_file = _read(source)
    if code_file.fault is None and not code_file.cut:
        _store(cached, code_file.prints)
    return code_file


def _load(path: Path) -> Fingerprints | None:
    """The cached fingerprints; None if there are none, or not as we wrote them."""
    try:
        hashes, starts = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        return Fingerprints(hashes.astype(np.uint64, casting="no"), starts.astype(np.int64))
    except (OSError, ValueError, TypeError, EOFError, AttributeError):
        return None


def _store(path: Path, prints: Fingerprints) -> None:
    """Cache fingerprints. This only saves time, so an unwritable folder is ignored."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, part.open("wb") as stream:
            np.save(stream, np.stack([prints.hashes, prints.starts.astype(np.uint64)]))
