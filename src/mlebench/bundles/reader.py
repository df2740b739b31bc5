"""A bundle, read and checked in one pass. What it claims is still a claim."""

import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from mlebench.bundles.archive import MAGIC, ArchiveReader, BundleRefusedError, printable_name
from mlebench.bundles.contents import LARGEST_FILE, LARGEST_RECORD
from mlebench.bundles.manifest import LARGEST_MANIFEST, read_manifest
from mlebench.bundles.strict_json import parse_object, record_of
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import OF_WRITING, reason_of
from mlebench.core.paths import FINDINGS, MANIFEST, PROFILES, SUBMISSION, GroupPaths, RunPaths, is_grading_report
from mlebench.records.base import fault_of
from mlebench.records.bundle import BundleManifest
from mlebench.records.findings import Findings, is_about
from mlebench.records.group import GroupRecord
from mlebench.records.reference_groups import REFERENCE, STATED
from mlebench.records.report import Report
from mlebench.records.run import ENDED, RunRecord
from mlebench.records.run_groups import Group, Run

MOST_RECORDS = 64 << 20  # bytes of all records
# What others rely on in a run's report.
_STATED = (*STATED[:-1], "status", "source")
_CLAIM = ("competition_id", "score", "any_medal", "gold_medal", "silver_medal", "bronze_medal")
_LARGEST_NUMBER = 1e300
_NAME = re.compile(r"\w[\w./@+-]{0,99}")  # of an agent: no text that could pass for ours


@dataclass(frozen=True)
class BundledGroup(Group):
    """A group without a folder here: its paths do not exist."""

    bundled: tuple[Run, ...] = ()

    def runs(self) -> Iterator[Run]:
        yield from self.bundled


@dataclass(frozen=True)
class Bundle:
    path: Path
    sha256: str  # of the whole file
    manifest: BundleManifest
    manifest_bytes: bytes  # what a signature signs
    group: BundledGroup
    submissions: dict[str, Path]  # by run id: those that were unpacked
    submission_hashes: dict[str, str]  # by run id: those that are in it
    findings: dict[str, list[Findings]]  # by run id: findings that the sender claims; unreadable ones are missing


def is_bundle(path: Path) -> bool:
    """Whether a file is packed like a bundle."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_bundle(path: Path, scratch: Path | None = None) -> Bundle:
    """Check all of a bundle; unpack its submissions into a folder of ours, under names of ours."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise BundleRefusedError("it is not a regular file")
            return _read(path, file, status.st_size, scratch)
    except BundleRefusedError as error:
        raise BundleRefusedError(f"{path} is refused: {error}") from None
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error


def _read(path: Path, file: BinaryIO, size: int, scratch: Path | None) -> Bundle:
    reader = ArchiveReader(file)
    data = reader.first(MANIFEST, LARGEST_MANIFEST)
    manifest = read_manifest(data, size)
    records: dict[str, bytes] = {}
    unpacked: dict[str, Path] = {}
    wanted = _records(manifest)
    findings = _findings(manifest)
    if scratch:
        _require_room(manifest, scratch)
    for number, member in enumerate(manifest.members):
        name = member.name
        pieces = reader.member(name, member.size, member.sha256)
        if name in wanted:
            records[name] = b"".join(pieces)
        elif name in findings:
            findings[name] = b"".join(pieces)
        elif scratch and _is_submission(name):
            unpacked[name] = _unpack(pieces, scratch / str(number))
        else:
            for _ in pieces:
                pass
    sha256 = reader.end()
    group, runs = _group(path, manifest, records)
    hashes = {member.name: member.sha256 for member in manifest.members}
    named = {run.record.run_id: _submission(run.paths.root.name) for run in runs}
    return Bundle(
        path,
        sha256,
        manifest,
        data,
        group,
        {id: unpacked[name] for id, name in named.items() if name in unpacked},
        {id: hashes[name] for id, name in named.items() if name in hashes},
        {run.record.run_id: list(_findings_of(run, findings)) for run in runs},
    )


def _require_room(manifest: BundleManifest, scratch: Path) -> None:
    needed = sum(member.size for member in manifest.members if _is_submission(member.name))
    if needed > (free := shutil.disk_usage(scratch).free):
        raise PrerequisiteError(
            f"its submissions have {needed} bytes, but only {free} are free in {scratch}: set TMPDIR to another disk"
        )


def _unpack(pieces: Iterator[bytes], folder: Path) -> Path:
    target = folder / f"{SUBMISSION}.csv"
    try:
        folder.mkdir()
        with target.open("xb") as file:
            file.writelines(pieces)
    except OSError as error:
        if error.errno not in OF_WRITING:
            raise
        why = f"{reason_of(error)}: set TMPDIR to another disk"
        raise PrerequisiteError(f"cannot unpack submissions into {folder.parent}: {why}") from error
    return target


def _submission(folder: str) -> str:
    return RunPaths(Path(folder)).submission.as_posix()


def _is_submission(name: str) -> bool:
    return name.count("/") == 2 and name == _submission(name.partition("/")[0])


def _records(manifest: BundleManifest) -> set[str]:
    """The members that hold the records of the group and of its runs, and the group's report."""
    sizes = {member.name: member.size for member in manifest.members}
    group, run = GroupPaths(Path()).record.name, RunPaths(Path()).record.name
    if group not in sizes:
        raise BundleRefusedError(f"it has no {group}")
    records = {group, *(name for name in sizes if name.endswith(f"/{run}") and name.count("/") == 1)}
    records |= sizes.keys() & {GroupPaths(Path()).metadata.name}
    reports = {name for name in sizes if is_grading_report(name) and "/" not in name}
    if max(sizes[name] for name in records) > LARGEST_RECORD or sum(sizes[name] for name in records) > MOST_RECORDS:
        raise BundleRefusedError("its records are larger than any genuine ones")
    if len(reports) > 1 or any(sizes[name] > LARGEST_FILE for name in reports):
        raise BundleRefusedError("it has several grading reports, or one that is too large")
    return records | reports


def _findings(manifest: BundleManifest) -> dict[str, bytes]:
    """The members that hold findings about runs, as far as there is room; their content is read later."""
    room, names = MOST_RECORDS, []
    for member in manifest.members:
        parts = member.name.split("/")
        if len(parts) == 3 and parts[1] == FINDINGS and parts[2].endswith(".json") and member.size <= room:
            room -= member.size
            names.append(member.name)
    return dict.fromkeys(names, b"")


def _findings_of(run: Run, findings: dict[str, bytes]) -> Iterator[Findings]:
    folder = f"{run.paths.root.name}/"
    for name, data in findings.items():
        if name.startswith(folder):
            try:
                record = record_of(Findings, data, printable_name(name))
            except PrerequisiteError:  # other tools may have left something else
                continue
            if is_about(run.record, record.made_at, record.facts):
                yield record


def _group(path: Path, manifest: BundleManifest, records: dict[str, bytes]) -> tuple[BundledGroup, list[Run]]:
    group_paths = GroupPaths(path.absolute())
    record = record_of(GroupRecord, records.pop(group_paths.record.name), group_paths.record.name)
    listing = records.pop(group_paths.metadata.name, None)
    if (record.agent.identity is None) != (record.origin is not None):
        raise BundleRefusedError(f"{group_paths.record.name}: `agent.identity` is missing or has the wrong type")
    if not _NAME.fullmatch(record.agent.name):
        raise BundleRefusedError(f"{printable_name(record.agent.name)} is not a name that an agent can have")
    if record.id != manifest.group or record.created_at != manifest.created_at or record.profile not in PROFILES:
        raise BundleRefusedError(f"{group_paths.record.name} and {MANIFEST} describe different groups")
    if (record.limits is None) != (record.origin is not None):
        raise BundleRefusedError(f"{group_paths.record.name}: `limits` is missing")
    reports = {name: records.pop(name) for name in list(records) if "/" not in name}
    runs = [_run(group_paths, name, data) for name, data in records.items()]
    _require_all(record, runs, listing)
    if any(run.record.report and run.record.report.source == "twin" for run in runs) > bool(record.twin):
        raise BundleRefusedError("its scores are on twins, but its group is not")
    for name, data in reports.items():
        _compare_report(printable_name(name), data, runs)
    runs = Group(group_paths, record).in_order(runs)
    return BundledGroup(group_paths, record, tuple(runs)), runs


def _run(group_paths: GroupPaths, name: str, data: bytes) -> Run:
    record = record_of(RunRecord, data, printable_name(name))
    folder = name.partition("/")[0]
    if folder != f"{record.competition}_{record.run_id}":
        raise BundleRefusedError(f"{printable_name(name)} is the record of another run")
    if record.state != ENDED:
        raise BundleRefusedError(f"{printable_name(name)} describes a run that has not ended")
    if record.report is not None:
        _require_stated(record.report, _STATED, printable_name(name), "report")
        if record.report.competition_id != record.competition:
            raise BundleRefusedError(f"{printable_name(name)} holds the report of another competition")
    return Run(RunPaths(group_paths.root / folder), record)


def _compare_report(name: str, data: bytes, runs: list[Run]) -> None:
    """A reader who opens only the group's report must find the same scores there."""
    try:
        rows = msgspec.convert(parse_object(data, name).get("competition_reports"), list[Report])
    except msgspec.ValidationError as error:
        raise BundleRefusedError(f"{name} is not a grading report: {fault_of(error)}") from None
    for row in rows:
        _require_stated(row, _CLAIM[2:], name, "competition_reports")
    claims = Counter(tuple(getattr(row, field) for field in _CLAIM) for row in rows)
    if claims != Counter(_claim(run.record) for run in runs):
        raise BundleRefusedError(f"{name} does not agree with the records of the runs")


def _claim(record: RunRecord) -> tuple[Any, ...]:
    """What a run claims; without a report, no score and no medal."""
    blank = Report(competition_id=record.competition, **dict.fromkeys(_CLAIM[2:], False))
    return tuple(getattr(record.report or blank, field) for field in _CLAIM)


def _require_stated(report: Report, fields: Iterable[str], name: str, section: str) -> None:
    """A stranger's report states these, and its numbers are small enough for any arithmetic."""
    for field, value in msgspec.structs.asdict(report).items():
        wrong = abs(value) >= _LARGEST_NUMBER if isinstance(value, float) else value is None and field in fields
        if wrong:
            raise BundleRefusedError(f"{name}: `{section}.{field}` is missing or has the wrong type")


def _require_all(record: GroupRecord, runs: list[Run], listing: bytes | None) -> None:
    """A group must be complete: bad runs cannot be withheld, nor good ones added."""
    if len(set(record.competitions)) != len(record.competitions):
        raise BundleRefusedError("its group names a competition twice")
    if len({run.record.run_id for run in runs}) != len(runs):
        raise BundleRefusedError("two of its runs have the same id")
    if record.origin:
        return _require_listed(record, runs, listing)
    actual = Counter((run.record.competition, run.record.seed) for run in runs)
    count = len(record.competitions) * max(record.seeds, 0)
    planned = len(runs) == count and Counter((id, seed) for id in record.competitions for seed in range(record.seeds))
    if not runs or actual != planned:
        raise BundleRefusedError(
            f"its group was planned with {count} runs, one for each competition and seed; it holds others"
        )
    return None


def _require_listed(record: GroupRecord, runs: list[Run], listing: bytes | None) -> None:
    """A group of the reference was planned with the runs that its metadata.json lists."""
    name = GroupPaths(Path()).metadata.name
    if record.origin != REFERENCE or listing is None:
        raise BundleRefusedError(f"it has no {name}, or its group was written by something unknown")
    listed = parse_object(listing, name).get("runs")
    competitions = {run.record.competition for run in runs}
    if not isinstance(listed, dict) or not runs or listed.keys() != {run.paths.root.name for run in runs}:
        raise BundleRefusedError(f"it holds other runs than its {name} lists")
    if competitions != set(record.competitions):
        raise BundleRefusedError("its group names other competitions than its runs")
