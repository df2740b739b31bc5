"""What is inspected: a run of ours, or a line of the reference's JSON-lines file."""

import json
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import CODE, LOGS
from mlebench.core.untrusted import ANY_SIZE, UntrustedFileError, open_below, open_untrusted, walk
from mlebench.records.findings import Findings
from mlebench.records.run_groups import Group, Run, find_group

logger = logging.getLogger(__name__)

MOST_FILES = 10_000


@dataclass(frozen=True)
class AgentFile:
    """A file that an agent left: its name for readers, and where it is."""

    name: str
    root: Path
    parts: tuple[str, ...]

    def read(self, limit: int) -> bytes:
        """Its beginning, up to `limit` bytes; nothing if it is not a file that may be read."""
        return self.ends(limit, 0)[0]

    def ends(self, head: int, tail: int) -> tuple[bytes, bytes]:
        """At most `head` bytes of its beginning and `tail` of its end; they do not overlap."""
        try:
            opened = open_below(self.root, self.parts, ANY_SIZE) if self.parts else open_untrusted(self.root, ANY_SIZE)
            with opened as file:
                begun = file.read(head)
                file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - tail))
                return begun, file.read(tail)
        except (UntrustedFileError, PrerequisiteError, OSError):
            return b"", b""


@dataclass(frozen=True)
class Subject:
    """A run, wherever it was described. What is missing is None or empty."""

    origin: str  # the run group or the file that it comes from
    name: str
    competition: str
    submission: Path | None
    logs: tuple[AgentFile, ...]
    code: tuple[AgentFile, ...]
    run: Run | None = None
    group: Group | None = None


def read_subjects(source: Group | Path | str, *runs_dirs: Path) -> Iterator[Subject]:
    """Yield the runs of a group, or those that a JSON-lines file describes.

    A group may be named by its path or, if it is in one of `runs_dirs`, by the beginning of its name. Raises
    PrerequisiteError if there is no such group or file, or if it cannot be read.
    """
    if not isinstance(source, Group) and Path(source).is_file():
        yield from _of_lines(Path(source))
        return
    group = source if isinstance(source, Group) else find_group(str(source), *runs_dirs)
    for run in group.runs():
        yield of_run(run, group)


def of_run(run: Run, group: Group) -> Subject:
    root = run.paths.root
    logs = [*sources_below(root, LOGS), *([AgentFile(run.paths.log.name, root, (run.paths.log.name,))])]
    return Subject(
        origin=group.paths.root.name,
        name=root.name,
        competition=run.record.competition,
        submission=run.paths.submission if run.paths.submission.is_file() else None,
        logs=tuple(logs),
        code=tuple(sources_below(root, CODE)),
        run=run,
        group=group,
    )


class FindingsWriter:
    """Writes findings to the folders of runs, and warns once if it cannot."""

    def __init__(self) -> None:
        self._has_warned = False

    def write(self, subject: Subject, findings: Findings) -> None:
        """Write findings about a subject, if it is a run of a group: a line of a file has no folder."""
        if subject.run is None:
            return
        try:
            findings.write_for(subject.run.paths)
        except OSError as error:
            if not self._has_warned:
                folder, reason = subject.run.paths.root, reason_of(error)
                logger.warning("The findings are shown but not stored: cannot write to %s: %s", folder, reason)
            self._has_warned = True


def sources_below(root: Path, *inside: str) -> Iterator[AgentFile]:
    """The regular files below a folder, by name, up to a maximum; links are skipped."""
    entries = (entry for entry in walk(root, *inside) if entry.status and stat.S_ISREG(entry.status.st_mode))
    for entry in islice(entries, MOST_FILES):
        yield AgentFile("/".join(entry.parts), root, entry.parts)


def _of_lines(path: Path) -> Iterator[Subject]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error
    if is_lfs_pointer(content):
        raise PrerequisiteError(f"{path} {LFS_POINTER}")
    lines = content.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or not isinstance(values.get("competition_id"), str):
            raise PrerequisiteError(f"{path}, line {number}: there is no JSON object with a `competition_id`")
        yield Subject(
            origin=str(path),
            name=f"line {number}",
            competition=values["competition_id"],
            submission=_path(values, "submission_path", path),
            logs=tuple(_given(_path(values, "logs_path", path))),
            code=tuple(_given(_path(values, "code_path", path))),
        )


def _path(data: dict[str, Any], key: str, beside: Path) -> Path | None:
    value = data.get(key)
    if not isinstance(value, str) or not value:
        return None
    path = beside.parent / value
    return path if path.exists() else None


def _given(path: Path | None) -> Iterator[AgentFile]:
    """What a line names: a file, or all files of a folder."""
    if path is None:
        return
    if path.is_dir():
        yield from sources_below(path)
    else:
        yield AgentFile(path.name, path, ())
