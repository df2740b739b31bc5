"""Which files of a run group go into its bundle, in which order, and how much of each."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from mlebench.bundles.archive import CHUNK
from mlebench.bundles.manifest import MOST_MEMBERS, name_fault
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import is_temporary
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import INFRA_ERROR
from mlebench.core.paths import CODE, LOGS, RUNNER_LOG
from mlebench.core.untrusted import FileForbiddenError, UntrustedFileError, open_below, printable, walk
from mlebench.records import DamagedRecordError, Record, read
from mlebench.records.bundle import OmittedFile
from mlebench.records.run import ENDED, NONE, PRESENT, RunRecord
from mlebench.records.run_groups import Group, Run

RECORD, SUBMISSION, LOG, PROGRAM = "record", "submission", "log", "program"  # kinds of members
LARGEST_RECORD = 1 << 20
LARGEST_FILE = 16 << 20  # bytes, of logs and code
ROOM = 32 << 20  # bytes of logs, and of code, for one run
MOST_FILES = 500  # of logs, and of code, of one run
MOST_NAMED = 100  # how many omitted files of a run to name
# Compressed files cannot be searched for secrets.
_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd", b"Rar!")


@dataclass(frozen=True)
class BundleFile:
    """A file that may be included."""

    name: str
    root: Path
    parts: tuple[str, ...]
    kind: str
    content: bytes | None = None  # of a record that is not on disk

    def read(self) -> bytes:
        """The whole file or, for a long log, its beginning and end; UntrustedFileError if it cannot be included."""
        if self.content is not None:
            return self.content
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            if self.kind != LOG or size <= LARGEST_FILE:
                most = LARGEST_RECORD if self.kind == RECORD else LARGEST_FILE
                data = file.read(most + 1)
                if len(data) > most:
                    raise UntrustedFileError(f"has more than {most} bytes")
                if self.kind == PROGRAM and data.startswith(_COMPRESSED):
                    raise UntrustedFileError("is compressed, so it cannot be searched for secrets")
                return data
            half = LARGEST_FILE // 2
            beginning = file.read(half)
            file.seek(size - half)
            return beginning + f"\n[mlebench: {size - 2 * half} bytes left out]\n".encode() + file.read(half)

    def pieces(self) -> Iterator[bytes]:
        with self._opened() as file:
            while piece := file.read(CHUNK):
                yield piece

    def size(self) -> int:
        with self._opened() as file:
            return os.fstat(file.fileno()).st_size

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with open_below(self.root, self.parts) as file:
                yield file
        except OSError as error:
            raise PrerequisiteError(f"cannot read {self.root.joinpath(*self.parts)}: {reason_of(error)}") from error


@dataclass
class OmittedFiles:
    """The files of a run or of the group that are left out, and why."""

    named: list[OmittedFile] = field(default_factory=list)
    more: int = 0

    def add(self, name: str, reason: str) -> None:
        if len(self.named) < MOST_NAMED:
            self.named.append(OmittedFile(name=printable(name), reason=reason))
        else:
            self.more += 1

    def to_list(self, name: str) -> list[OmittedFile]:
        return self.named + (
            [OmittedFile(name=name, reason=f"{self.more} more files are left out")] if self.more else []
        )


def group_items(group: Group, runs: Iterable[Run]) -> list[BundleFile]:
    """The files of the group itself; one of the reference gets the record that it lacks.

    A grading report that was made before a run's record was damaged does not agree with the runs any more.
    """
    root, record = group.paths.root, group.paths.record.name
    own = [BundleFile(record, root, (record,), RECORD)]
    if group.record.origin:
        listing = group.paths.metadata.name
        own = [_made(record, root, group.record), BundleFile(listing, root, (listing,), RECORD)]
    report = None if any(run.fault for run in runs) else group.record.report
    return own + ([BundleFile(report, root, (report,), PROGRAM)] if report else [])


def _made(name: str, root: Path, record: Record) -> BundleFile:
    return BundleFile(name, root, (name,), RECORD, record.to_text().encode())


def _stand_in(run: Run) -> RunRecord:
    """The record of a run whose own is damaged: whoever gets the bundle sees that it is missing, and why.

    A record that only could not be read is not damaged: a fault of our disk may be gone the next time.
    """
    try:
        read(run.paths.record, RunRecord)
    except DamagedRecordError:
        pass
    except OSError as error:
        raise PrerequisiteError(f"cannot read {run.paths.record}: {reason_of(error)}") from error
    else:
        raise PrerequisiteError(str(run.fault))
    return run.record.changed(state=ENDED, ended=INFRA_ERROR, detail=run.fault, submission=NONE)


def run_items(run: Run, runs: int, left_out: OmittedFiles) -> Iterator[BundleFile]:
    """The files of a run in a group of `runs` runs."""
    root = run.paths.root
    folder = root.name

    def item(path: Path, kind: str) -> BundleFile:
        parts = path.relative_to(root).parts
        return BundleFile("/".join((folder, *parts)), root, parts, kind)

    if run.fault:
        yield _made(f"{folder}/{run.paths.record.name}", root, _stand_in(run))
    elif run.paths.record.is_file():
        yield item(run.paths.record, RECORD)
    else:  # a run of the reference
        yield _made(f"{folder}/{run.paths.record.name}", root, run.record)
    if run.record.submission == PRESENT:
        yield item(run.paths.submission, SUBMISSION)
    most = min(MOST_FILES, MOST_MEMBERS // (4 * max(runs, 1)))
    for finding in _below(root, run.paths.findings.name, PROGRAM, most, left_out):
        if not is_temporary(finding.parts[-1]):  # a tool was killed while it wrote
            yield finding
    yield from _below(root, CODE, PROGRAM, most, left_out)
    yield from _below(root, LOGS, LOG, most, left_out)
    for path in (run.paths.log, root / RUNNER_LOG):
        if path.is_file():
            yield item(path, LOG)


def _below(root: Path, part: str, kind: str, most: int, left_out: OmittedFiles) -> Iterator[BundleFile]:
    """The regular files below a folder, in order, as long as there is room; a fault of our disk is raised."""
    room = ROOM
    for parts, status, fault, error in walk(root, part):
        if error and not isinstance(error, PermissionError | NotADirectoryError):
            raise PrerequisiteError(f"cannot read {root.joinpath(*parts)}: {reason_of(error)}") from error
        if status and not stat.S_ISREG(status.st_mode):
            fault = "is not a regular file"
        item = BundleFile("/".join((root.name, *parts)), root, parts, kind)
        try:
            size = 0 if fault else min(item.size(), LARGEST_FILE if kind == LOG else LARGEST_FILE + 1)
        except (UntrustedFileError, FileForbiddenError) as error:  # with any other fault there is no bundle
            fault, size = str(error), 0
        fault = fault or name_fault(item.name)
        if not fault and (size > room or most < 1):
            fault = f"there is no room: at most {ROOM >> 20} MB and {MOST_FILES} files of {part} are packed"
        if fault:
            left_out.add(item.name, fault)
        else:
            room, most = room - size, most - 1
            yield item
