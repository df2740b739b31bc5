"""Compares prepared files with the manifest, and files and archives with the published checksums.

`verify` checks every file; with millions of them, several processes compare them with their list. `changes` is quick:
`prepare` keeps data that is already prepared, and warns when it would now make something different.
"""

import errno
import hashlib
import logging
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.config import FIRST_PROFILE
from mlebench.core import paths
from mlebench.core.errors import InvalidSubmissionError, PrerequisiteError
from mlebench.core.files import remove_temporaries, write_whole
from mlebench.core.isolate import Calls, call
from mlebench.core.leases import PATIENCE, acquire
from mlebench.core.os_errors import disk_errors
from mlebench.core.paths import MANIFEST, MANIFEST_FILES, moved
from mlebench.data.manifest import (
    PARQUET,
    SIDES,
    FileEntry,
    Files,
    Span,
    UnreadableListError,
    files_in,
    merge_join,
    read_head,
    recorded_files,
    rewrite_manifest,
    spans,
    write_manifest,
)
from mlebench.data.modes import let_owners_write, restore_modes
from mlebench.data.open_runs import refuse_while_open
from mlebench.data.sources import archive_md5
from mlebench.data.state import command_to_prepare, holds_twins, read_manifest_head, require_prepared
from mlebench.engine.progress import SILENT, Progress
from mlebench.records.data import DataSource, Manifest
from mlebench.registry import Competition

logger = logging.getLogger(__name__)

Pair = tuple[str, dict[str, Any] | None, dict[str, Any] | None]  # a file's name, what is recorded and what is there

OURS, ORIGINAL = "ours", "original"  # descriptions
MOST_FILES = 10_000  # up to this many, checking each takes no time
MOST_PARTS = 4  # each reads the folders at its bounds, which may hold most of the files
MOST_RETURNED = 10_000  # files of a part; more are compared here, one after the other, to save memory


def check_archive(competition: Competition, archive: Path, progress: Progress = SILENT) -> bool:
    """Raise unless the archive is the published one; return False if none is published."""
    expected = published_archive(competition)
    if expected is None:
        return False
    actual = archive_md5(archive, competition.paths, progress)
    if actual != expected:
        raise PrerequisiteError(
            f"{archive} is not the published archive: its md5 is {actual}, not {expected}. If someone repacked the "
            f"same files, unpack it into a folder and pass that with --from: then the prepared files are verified "
            f"instead. Otherwise get it again, or accept it with --skip-verification."
        )
    return True


def check_prepared(competition: Competition, tables: Files) -> None:
    """Compare what is staged with the published figures; the error lists every file that differs."""
    staging = competition.paths.staging
    differences = []
    for name, figures in published_files(competition).items():
        path = staging / name
        md5 = tables[name]["md5"] if name in tables else _md5(path) if path.is_file() else None
        if fault := _published_fault(path, figures, md5):
            differences.append(f"  {name} {fault}")
    if differences:
        lines = "\n".join(differences)
        raise PrerequisiteError(
            f"{competition.id}: {len(differences)} prepared files differ from the published ones "
            f"(--skip-verification keeps them):\n{lines}"
        )


def check_sample_score(competition: Competition, progress: Progress = SILENT) -> None:
    """Raise unless the sample submission scores on real data what it always has, which a different dataset shows."""
    from mlebench.engine.frames import read_frame

    expected = competition.sample_score
    folders = competition.paths
    answers, sample = (
        moved(path, folders.prepared, folders.staging) for path in (competition.answers, competition.sample_submission)
    )
    if expected is None or {answers.suffix, sample.suffix} != {".csv"}:
        return
    progress.tell("grading the sample")
    try:
        score = competition.grader.score(read_frame(sample), read_frame(answers))
    except InvalidSubmissionError as error:
        fault = f"cannot be graded ({error}); it scores {expected}"
    else:
        if math.isclose(score, expected, abs_tol=1e-5) or (math.isnan(score) and math.isnan(expected)):
            return
        fault = f"scores {score}, not {expected} as"
    raise PrerequisiteError(
        f"{competition.id}: the sample submission {fault} on the published data. "
        f"This is a different dataset; --skip-verification keeps it."
    )


def overwrite(competition: Competition, raw: Path, tables: Files) -> None:
    """Rewrite the checksums of the competition's profile from what was just prepared."""
    import yaml

    staging = competition.paths.staging
    sums: dict[str, Any] = dict(prepared_checksums(tables))
    contents = {
        side: {name: _content_hash(staging / side / name) for name in sums[side] if name.endswith(PARQUET)}
        for side in SIDES
    }
    if any(contents.values()):
        sums["content"] = contents
    if competition.profile == FIRST_PROFILE and (
        archive := _md5(raw) if raw.is_file() else published_archive(competition)
    ):
        sums["zip"] = archive
    write_whole(competition.checksums, yaml.safe_dump(sums, default_flow_style=False))


def prepared_checksums(tables: Files) -> dict[str, dict[str, str]]:
    """md5 of the tables and records directly in public/ and private/, by the published selection."""
    sums: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    for path, facts in tables.items():
        side, _, name = path.partition("/")
        sums[side][name] = facts["md5"]
    return sums


class PublishedHashes(NamedTuple):
    """What is published about a file: its md5 and, for parquet, a hash of its content."""

    md5: str
    content: str | None


def published_archive(competition: Competition) -> str | None:
    """The md5 of Kaggle's archive; profiles share it, and the first one states it."""
    first = competition.checksums
    if competition.profile != FIRST_PROFILE:
        first = first.with_name(paths.CHECKSUMS)
    return _checksums(first).get("zip")


def published(competition: Competition) -> dict[str, Any]:
    return _checksums(competition.checksums)


def _checksums(path: Path) -> dict[str, Any]:
    import yaml

    if not path.is_file():
        return {}
    try:
        sums = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        sums = None
    if isinstance(sums, dict) and all(isinstance(sums.get(key, {}), dict) for key in (*SIDES, "content")):
        return sums
    raise PrerequisiteError(f"{path} does not hold checksums by name: fix it, or remove it if none are published")


def published_files(competition: Competition) -> dict[str, PublishedHashes]:
    sums = published(competition)
    contents = sums.get("content", {})
    return {
        f"{side}/{name}": PublishedHashes(md5, contents.get(side, {}).get(name))
        for side in SIDES
        for name, md5 in sorted(sums.get(side, {}).items())
    }


def _published_fault(path: Path, figures: PublishedHashes, md5: str | None) -> str | None:
    if md5 == figures.md5:
        return None
    if md5 is None:
        return f"is missing, though one with md5 {figures.md5} is published"
    if not path.name.endswith(PARQUET):
        return f"has md5 {md5}, published is {figures.md5}"
    # Other bytes may have the same content: they depend on the library that wrote them.
    if figures.content is None:
        logger.warning("%s is not compared: its bytes depend on a library, and no hash of its content is known", path)
        return None
    try:
        actual = _content_hash(path)
    except (OSError, ValueError) as error:  # also how arrow reports damage
        return f"cannot be read ({error})"
    return None if actual == figures.content else f"has content {actual}, published is {figures.content}"


def _content_hash(path: Path) -> str:
    from mlebench.engine.parquet import content_hash

    return content_hash(path)


def _md5(path: Path) -> str:
    from mlebench.engine.raw_streams import md5_of

    return md5_of(path)


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value


class FileDifference(NamedTuple):
    """A file that is not what it should be."""

    file: str
    fault: str


def verify(
    competition: Competition, *, deep: bool = False, adopt: bool = False, processes: int = 1
) -> list[FileDifference]:
    """Compare prepared files with the manifest and the published checksums; `deep` reads them all, and the archive.

    `adopt` accepts files as they are if nothing is known to compare them with. Another program's data has no manifest;
    `adopt` gives it one, unless something differs. With very many files, up to `processes` share the work; a script
    that asks for several needs `if __name__ == "__main__":`.
    """
    folders = competition.paths
    if adopt:
        refuse_while_open(competition, "--adopt")
    with disk_errors(folders.root, folders.root):
        restore_modes(folders)
        head = read_head(folders.manifest)
        if head is None:
            require_prepared(competition)
        twin = holds_twins(folders.data_dir) or (head is not None and head.source.kind == "twin")
        comparison, faults = _compare_all(competition, head, processes, twin=twin, deep=deep, adopt=adopt)
        differences: list[FileDifference] = []
        if not comparison.on_record and not adopt:
            state = "cannot be read" if folders.manifest.exists() else "is missing: the data was prepared elsewhere"
            differences.append(FileDifference(MANIFEST, f"{state}; --adopt accepts it"))
        if deep and (fault := _archive_fault(competition, twin)):
            differences.append(FileDifference(folders.archive.name, fault))
        differences += faults
        if differences or comparison.learned:
            _require_unchanged(competition, head)
    adopted = not comparison.on_record and adopt and not differences
    outdated = head is not None and head.identity is None and not differences
    if adopted or (comparison.on_record and (comparison.learned or outdated)):
        try:
            _record(competition, head, comparison)
        except OSError as error:  # the verdict is valid anyway
            fault = f"cannot be written ({error.strerror}): nothing was recorded"
            if adopt:
                differences.append(FileDifference(MANIFEST, fault))
            else:
                logger.warning("%s %s", folders.manifest, fault)
    return differences


def _compare_all(
    competition: Competition, head: Manifest | None, processes: int, **options: bool
) -> tuple["_Comparison", list[FileDifference]]:
    """What differs from the list of files or, if that is unreadable, from the published checksums."""
    if head is not None:
        comparison = _Comparison(competition, on_record=True, **options)
        try:
            return comparison, comparison.differences(processes)
        except UnreadableListError:
            pass
    comparison = _Comparison(competition, on_record=False, **options)
    return comparison, comparison.differences()


def _record(competition: Competition, head: Manifest | None, comparison: "_Comparison") -> None:
    """Write the manifest, unless another process is preparing or recording the same data."""
    folders = competition.paths
    lease = acquire(folders.lock, wait=False, patience=PATIENCE)
    if lease is None:
        raise OSError(errno.EBUSY, "another process is working on this data")
    try:
        with lease.renewed():
            _require_unchanged(competition, head)
            remove_temporaries(folders.prepared / MANIFEST, folders.prepared / MANIFEST_FILES)
            if head and comparison.on_record:
                rewrite_manifest(folders.prepared, head, comparison.entries())
            else:
                let_owners_write(folders.prepared)
                write_manifest(competition, folders.prepared, DataSource(kind="unknown"), comparison.entries())
    finally:
        lease.release()


def _require_unchanged(competition: Competition, head: Manifest | None) -> None:
    """Raise if the data was prepared again; another process may have added what it learned about the same data."""
    now = read_head(competition.paths.manifest)
    if (now and now.prepared_at) != (head and head.prepared_at):
        raise PrerequisiteError(f"{competition.id} was prepared again in the meantime: verify it again")


def _archive_fault(competition: Competition, twin: bool) -> str | None:
    """What is wrong with the archive, if it is there: prepared data does not need it."""
    from mlebench.engine.archives.zip_tree import ZipTree

    archive = competition.paths.archive
    expected = None if twin else published_archive(competition)
    if not archive.is_file():
        return None
    try:
        if expected is None:
            ZipTree(archive)
        elif (actual := _md5(archive)) != expected:
            return f"has md5 {actual}, published is {expected}"
    except PrerequisiteError as error:
        return str(error).removeprefix(str(archive)).lstrip(": ")
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None


class _Comparison:
    """Compares prepared files with their list, one after the other; each is read at most once."""

    def __init__(self, competition: Competition, *, on_record: bool, twin: bool, deep: bool, adopt: bool):
        self._prepared = competition.paths.prepared
        self.on_record = on_record
        self._published = {} if twin else published_files(competition)
        self._deep = deep and (adopt or on_record)  # otherwise there is nothing to compare with
        self._adopt = adopt
        self.learned: Files = {}  # files whose recorded facts should change
        self._digest = lru_cache(maxsize=1)(lambda name: _md5(self._prepared / name))

    def entries(self) -> Iterator[FileEntry]:
        """The list of files as it should be."""
        before = recorded_files(self._prepared) if self.on_record else files_in(self._prepared)
        return ((name, self.learned.get(name, facts)) for name, facts in before)

    def differences(self, processes: int = 1) -> list[FileDifference]:
        unseen = dict(self._published)
        differences: list[FileDifference] = []
        for name, recorded, actual in self._pairs(processes):
            differences += self._differences(name, recorded, actual, unseen.pop(name, None))
        for name, figures in unseen.items():
            differences += self._differences(name, None, None, figures)
        return sorted(differences, key=lambda difference: difference.file)

    def _pairs(self, processes: int) -> Iterator[Pair]:
        """The files that need a closer look, of up to millions."""
        always_check = frozenset(self._published)
        if self.on_record and not self._deep:
            return suspect_files(self._prepared, always_check, processes)
        files = files_in(self._prepared)
        if self.on_record:
            return merge_join(recorded_files(self._prepared), files)
        pairs = ((name, facts, facts) for name, facts in files)
        return pairs if self._deep else suspects(pairs, always_check)

    def _differences(
        self, name: str, recorded: dict[str, Any] | None, actual: dict[str, Any] | None, figures: PublishedHashes | None
    ) -> list[FileDifference]:
        try:
            faults = list(self._faults(name, recorded, actual, figures))
        except OSError as error:
            faults = [f"cannot be read ({error.strerror})"]
        return [FileDifference(name, fault) for fault in faults]

    def _faults(
        self, name: str, recorded: dict[str, Any] | None, actual: dict[str, Any] | None, figures: PublishedHashes | None
    ) -> Iterator[str]:
        if actual is None and recorded is not None:
            yield "is missing"
        elif actual is not None and "fault" in actual:
            yield actual["fault"]
        else:
            exists = actual is not None
            is_right, unpublished = self._compare_with_published(name, figures, exists) if figures else (None, None)
            if recorded is None:
                fault = "is not on record" if actual else None
            else:
                fault = self._compare(name, recorded, actual or {}, is_right)
            yield from (fault for fault in (fault, unpublished) if fault)

    def _compare_with_published(
        self, name: str, figures: PublishedHashes, exists: bool
    ) -> tuple[bool | None, str | None]:
        """Whether the file is proven to be right or wrong, and what is wrong with it; a parquet file may be neither."""
        md5 = self._digest(name) if exists else None
        fault = _published_fault(self._prepared / name, figures, md5)
        if fault:
            return False, fault
        return (True if md5 == figures.md5 or figures.content else None), None

    def _compare(
        self, name: str, recorded: dict[str, Any], actual: dict[str, Any], is_right: bool | None
    ) -> str | None:
        if actual["size"] != recorded["size"]:
            return f"has {actual['size']} bytes, not {recorded['size']}"
        touched = actual["mtime_ns"] != recorded.get("mtime_ns", actual["mtime_ns"])
        if fault := self._checksum_fault(name, recorded, touched):
            return fault
        facts = {"mtime_ns": actual["mtime_ns"]} if touched else {}
        if not recorded.keys() & {"md5", "crc32"}:
            if touched and is_right is False:
                return None  # the difference from the published file is already reported
            if touched and not is_right and not self._adopt:
                return "has a different time, and its checksum is unknown: it may have been changed; --adopt accepts it"
            if self._deep or (touched and is_right):
                facts["md5"] = self._digest(name)
        if facts:
            self.learned[name] = recorded | facts
        return None

    def _checksum_fault(self, name: str, recorded: dict[str, Any], touched: bool) -> str | None:
        if "md5" in recorded and (self._deep or touched or "mtime_ns" not in recorded):
            return None if self._digest(name) == recorded["md5"] else "does not have the md5 on record"
        if "crc32" in recorded and self._deep:
            return (
                None
                if _crc32(self._prepared / name) == recorded["crc32"]
                else "does not have the checksum in the archive"
            )
        return None


def suspect_files(prepared: Path, always_check: frozenset[str], processes: int) -> Iterator[Pair]:
    """Compare the files with their list, and yield the `suspects`."""
    parts = spans(prepared, min(processes, MOST_PARTS))
    if len(parts) == 1:
        yield from _in_part(prepared, always_check, parts[0])
        return
    with Calls(len(parts)) as calls:
        compared = [calls.submit(call, _few_in_part, (prepared, always_check, part, MOST_RETURNED)) for part in parts]
        for part, future in zip(parts, compared, strict=True):
            pairs = future.result()
            yield from _in_part(prepared, always_check, part) if pairs is None else pairs


def _in_part(prepared: Path, always_check: frozenset[str], part: Span) -> Iterator[Pair]:
    return suspects(merge_join(recorded_files(prepared, part), files_in(prepared, part)), always_check)


def _few_in_part(work: tuple[Path, frozenset[str], Span, int]) -> list[Pair] | None:
    prepared, always_check, part, most = work
    pairs = list(islice(_in_part(prepared, always_check, part), most + 1))
    return pairs if len(pairs) <= most else None


def suspects(pairs: Iterable[Pair], always_check: frozenset[str]) -> Iterator[Pair]:
    """Yield files that size and time do not prove right, and those that are always checked."""
    for pair in pairs:
        name, recorded, actual = pair
        if not (recorded and actual and _are_alike(recorded, actual)) or name in always_check:
            yield pair


def _are_alike(recorded: dict[str, Any], actual: dict[str, Any]) -> bool:
    return (
        actual["size"] == recorded["size"]
        and "fault" not in actual
        and (recorded["mtime_ns"] == actual["mtime_ns"] if "mtime_ns" in recorded else "md5" not in recorded)
    )


def code_hash(competition: Competition, *, twin: bool, with_ours: bool = False) -> str:
    """Return a hash of the competition's code that decides what is prepared; `with_ours` adds that of the kit."""
    other_profiles = {f"{profile}.py" for profile in paths.PROFILES if profile != competition.profile}
    left_out = {paths.GRADE, *other_profiles, *(() if twin else (paths.TWIN,))}
    digest = hashlib.sha256()
    folders = [competition.folder]
    if with_ours:
        folders += [paths.module_dir() / name for name in ("engine", "kit", "metrics")]
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.name not in left_out:
                digest.update(f"{path.relative_to(folder)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def changes(competition: Competition) -> list[str]:
    """What would be different if our data were prepared now, each in a few words."""
    folders = competition.paths
    with disk_errors(folders.root, folders.root):
        head = read_manifest_head(competition)
        if head is None:
            return []
        twin = head.source.kind == "twin"
        reasons = []
        if head.code not in (None, code_hash(competition, twin=twin)):
            reasons.append("the competition's code has changed since")
        if head.description == OURS and _has_another_description(competition):
            reasons.append(f"{paths.DESCRIPTION} is not the competition's description")
        if head.files <= MOST_FILES and (count := _other_files(competition)):
            reasons.append(f"{count} of {head.files} files are missing or have another size")
    return reasons


def command_to_prepare_again(competition: Competition) -> str:
    """What to type to make the same kind of data again with the current code."""
    head = read_manifest_head(competition)
    return command_to_prepare(competition, "--force", *(_options_used(competition.paths, head) if head else ()))


def _options_used(folders: paths.CompetitionPaths, head: Manifest) -> list[str]:
    again = ["--description original"] if head.description == ORIGINAL else []
    if head.source.kind == "local" and not (folders.raw.is_dir() or folders.archive.is_file()):
        again.append("--from PATH_OF_RAW_DATA")  # it lies elsewhere, and may have moved
    if head.source.kind == "twin":
        usual = {"seed": 0, "size": 1.0}
        again += [
            f"--{name} {value:g}" for name in usual if (value := getattr(head.source, name)) not in (None, usual[name])
        ]
    return again


def _has_another_description(competition: Competition) -> bool:
    try:
        return (competition.public_dir / paths.DESCRIPTION).read_bytes() != competition.description.encode("utf-8")
    except FileNotFoundError:
        return False  # counted among the files


def _other_files(competition: Competition) -> int:
    prepared = competition.paths.prepared
    try:
        return sum(_size(f"{prepared}/{name}") != facts["size"] for name, facts in recorded_files(prepared))
    except UnreadableListError:
        return 0  # `verify` says that it cannot be read


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
