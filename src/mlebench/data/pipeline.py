"""Raw → prepared: everything is made in a staging folder, checked, and appears in one rename.

An interrupted or failed prepare leaves nothing that looks prepared, and the next one resumes where it stopped. Two
prepares of one competition take turns.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from mlebench.config import FIRST_PROFILE
from mlebench.core import paths
from mlebench.core.errors import CompetitionError, PrerequisiteError
from mlebench.core.files import remove_temporaries
from mlebench.core.leases import held
from mlebench.core.os_errors import disk_errors
from mlebench.data.diagnosis import explain_prepare_failure
from mlebench.data.gold import measure_gold, write_gold
from mlebench.data.manifest import (
    FileEntry,
    files_in,
    library_versions,
    merge_join,
    with_checksums,
    write_manifest,
)
from mlebench.data.modes import restore_modes
from mlebench.data.open_runs import refuse_while_open
from mlebench.data.sharing import share_files
from mlebench.data.sources import (
    LocalSource,
    RawSource,
    TwinSource,
    choose_raw,
    file_identity,
    missing_beside_archive,
    remove,
    unpack,
)
from mlebench.data.state import claim_data_dir, is_prepared, preparation_fault, read_manifest_head
from mlebench.data.verification import (
    ORIGINAL,
    OURS,
    check_archive,
    check_prepared,
    check_sample_score,
    code_hash,
    overwrite,
)
from mlebench.description import with_submission_rules
from mlebench.engine.progress import SILENT, Progress
from mlebench.engine.trees import MODE
from mlebench.registry import Competition

logger = logging.getLogger(__name__)

PUBLISHED = (paths.PUBLIC, paths.PRIVATE, paths.MANIFEST, paths.MANIFEST_FILES)


@dataclass(frozen=True)
class Options:
    """How to prepare; the defaults are the safe ones."""

    keep_raw: bool = False
    verify: bool = True
    overwrite_checksums: bool = False
    original_description: bool = False
    force: bool = False  # prepare again; existing data stays until the new data is complete


def prepare(
    competition: Competition,
    source: RawSource | None = None,
    options: Options = Options(),  # noqa: B008 it is frozen
    watch: Progress = SILENT,
) -> bool:
    """Prepare a competition's data; False if it was already prepared."""
    source = source or LocalSource()
    folders = competition.paths
    if source.twin and options.overwrite_checksums:
        raise PrerequisiteError("checksums are those of real data: they cannot be overwritten with a twin's")
    with disk_errors(folders.root, folders.raw, folders.archive):
        claim_data_dir(folders.data_dir, twin=source.twin)
        if _is_ready(competition, source, options):  # works on a read-only disk too
            _remove_if_possible(folders.replaced)
            restore_modes(folders)
            return False
        with _locked(folders, watch) as require_lock:
            _restore(folders)
            if _is_ready(competition, source, options):  # the process that held the lock has done it
                return False
            _refuse_to_replace(competition)
            remove(folders.replaced)
            try:
                _fetch_and_stage(competition, source, options, watch)
            except SystemExit as error:  # one competition's code must not end work on the others
                raise RuntimeError(f"the code of {competition.id} called sys.exit({error.code!r})") from error
            watch.tell("sharing files")
            share_files(folders)
            _refuse_to_replace(competition)  # a run may have begun meanwhile
            require_lock()
            _publish(competition, watch)
    return True


def _fetch_and_stage(competition: Competition, source: RawSource, options: Options, watch: Progress) -> None:
    """Get raw data, prepare it in the staging folder, write its manifest, and check it against what is published."""
    folders = competition.paths
    _refuse_foreign_leftovers(competition)
    watch.tell("getting the data")
    if options.force and isinstance(source, TwinSource):
        source.forget(folders)  # its code may have changed
    raw = source.fetch(competition, watch)
    if fault := missing_beside_archive(competition, raw.parent, raw):
        raise PrerequisiteError(fault)
    check = options.verify and not source.twin and not options.overwrite_checksums
    known = check and raw.is_file() and check_archive(competition, raw, watch)
    with explain_prepare_failure(competition, trusted=known or source.twin):
        entries = _stage(competition, source, raw, options, watch)
    entries = with_checksums(folders.staging, entries, watch)
    description = ORIGINAL if options.original_description else OURS
    code = code_hash(competition, twin=source.twin)
    watch.tell("grading gold")
    gold = measure_gold(competition, folders.staging)
    tables = write_manifest(competition, folders.staging, source.describe(raw), entries, description, code, watch, gold)
    if options.overwrite_checksums:
        overwrite(competition, raw, tables)
    if check:
        check_prepared(competition, tables)
        check_sample_score(competition, watch)


def _refuse_to_replace(competition: Competition) -> None:
    if competition.paths.prepared.exists():
        refuse_while_open(competition, "preparing it again")


def _publish(competition: Competition, watch: Progress) -> None:
    """Rename staging to prepared, with the planned files alone: what attempts needed or left when killed is removed."""
    folders = competition.paths
    named = (competition.answers, competition.gold_submission, competition.sample_submission)
    planned = {
        *PUBLISHED,
        *(path.relative_to(folders.prepared).parts[0] for path in named if path.is_relative_to(folders.prepared)),
    }
    if folders.unpacked.exists():  # renamed first: a half-removed one must not look complete
        watch.tell("tidying up")
        remove(folders.unpacked.rename(folders.staging / f"{paths.SCRATCH}{folders.unpacked.name}"))
    for leftover in folders.staging.iterdir():
        if leftover.name not in {*planned, folders.attempt.name}:
            remove(leftover)
    folders.archive_elsewhere_record.unlink(missing_ok=True)
    remove_temporaries(folders.archive_record, folders.archive_elsewhere_record, folders.raw_staging_record)
    folders.attempt.unlink()
    # Renamed before it is removed: something half removed must not look prepared.
    if folders.prepared.exists():
        folders.prepared.rename(folders.replaced)
    folders.staging.rename(folders.prepared)
    _remove_if_possible(folders.replaced)


def _restore(folders: paths.CompetitionPaths) -> None:
    """Bring back old data if the process was killed before the new data took its place."""
    if folders.replaced.exists() and not folders.prepared.exists():
        folders.replaced.rename(folders.prepared)


def _is_ready(competition: Competition, source: RawSource, options: Options) -> bool:
    if options.force or options.overwrite_checksums or not is_prepared(competition):
        return False
    if isinstance(source, TwinSource):
        manifest = read_manifest_head(competition)
        return manifest is not None and source.matches(msgspec.structs.asdict(manifest.source))
    return True


def _refuse_foreign_leftovers(competition: Competition) -> None:
    """Raise if another program began to prepare this: that is not ours to remove."""
    folders = competition.paths
    if read_manifest_head(competition) is None and any(not path.is_dir() for path in folders.prepared.rglob("*")):
        fault = preparation_fault(competition)
        raise PrerequisiteError(
            f"{folders.prepared} was not made by this program{f' and is incomplete: {fault}' if fault else '.'} "
            f"Move it away, and prepare again"
        )


def _stage(
    competition: Competition, source: RawSource, raw: Path, options: Options, watch: Progress
) -> Iterable[FileEntry]:
    """Fill the staging folder, or continue to; returns what is known about each file in it, sorted by name."""
    competition_paths = competition.paths
    prepare = competition.prepare_for_engine
    if raw.is_file() and (prepare is None or options.keep_raw):
        raw = _unpack_raw(competition, raw, options, watch)
    attempt = {
        "versions": library_versions(),
        "code": code_hash(competition, twin=source.twin, with_ours=True),  # work by different code is not resumed
        "twin": msgspec.to_builtins(source.describe(raw))
        if source.twin
        else None,  # for real data it does not matter who fetched it
        "raw": file_identity(raw),
    }
    resumes = _begin_attempt(competition_paths, attempt, from_scratch=prepare is None)
    if resumes:
        logger.info("Continuing with %s", competition.id)
    folders = competition_paths.staging / paths.PUBLIC, competition_paths.staging / paths.PRIVATE
    if prepare:
        from mlebench.kit.outputs import run_prepare

        entries = run_prepare(prepare, raw, *folders, watch, competition_paths.unpacked, competition_paths.written)
    else:
        competition.prepare_fn(raw=raw, public=folders[0], private=folders[1])
        entries = files_in(competition_paths.staging)
    remove(competition_paths.raw_staging)
    if resumes:
        _remove_leftovers(competition_paths.staging, entries)
    added = [_write_description(competition, folders[0], options)]
    _check_complete(competition)
    staged = competition.prepared_in(competition_paths.staging)
    if competition.profile != FIRST_PROFILE and not staged.gold_submission.exists():
        added.append(write_gold(staged, competition_paths.staging))
    names = {name for name, _ in added}
    return merge((entry for entry in entries if entry[0] not in names), sorted(added), key=itemgetter(0))


def _remove_leftovers(staging: Path, entries: Iterable[FileEntry]) -> None:
    """Remove what an earlier attempt left and this one did not make."""
    pairs = merge_join(iter(entries), files_in(staging))
    for name in [name for name, made, _ in pairs if made is None]:
        (staging / name).unlink()


def _unpack_raw(competition: Competition, archive: Path, options: Options, watch: Progress) -> Path:
    """Return the archive as a folder: as raw/ if it is kept, where it must not replace anything."""
    folders = competition.paths
    if options.keep_raw and folders.raw.is_dir() and any(folders.raw.iterdir()):
        if choose_raw(folders.raw, archive) != folders.raw:
            raise PrerequisiteError(
                f"{folders.raw} is not what {archive} holds: move it away, or leave it and prepare without --keep-raw"
            )
        if fault := missing_beside_archive(competition, folders.raw, folders.root):
            raise PrerequisiteError(fault)
        return folders.raw
    if options.keep_raw and (folders.raw.is_symlink() or folders.raw.is_mount()):
        raise PrerequisiteError(
            f"{folders.raw} is a link or a mount, not a folder to unpack into: prepare without --keep-raw"
        )
    folder = unpack(archive, folders, competition.beside_archive, watch)
    return folder.rename(folders.raw) if options.keep_raw else folder


def _remove_if_possible(leftover: Path) -> None:
    """Remove what is no longer needed, if possible; failing is fine, since everything is prepared."""
    try:
        remove(leftover)
    except OSError as error:
        logger.warning("%s cannot be removed (%s)", leftover, error.strerror)


def _begin_attempt(folders: paths.CompetitionPaths, attempt: dict[str, Any], from_scratch: bool) -> bool:
    """Get the staging folder ready; True if it holds work on the very same data that can be continued."""
    resumes = (
        not from_scratch
        and folders.attempt.is_file()
        and folders.attempt.read_text(encoding="utf-8") == json.dumps(attempt)
    )
    if not resumes:
        folders.attempt.unlink(missing_ok=True)  # first: something half removed must not be resumed
        remove(folders.staging)
    for leftover in folders.staging.glob(f"{paths.SCRATCH}*"):
        shutil.rmtree(leftover)
    for side in (paths.PUBLIC, paths.PRIVATE):
        (folders.staging / side).mkdir(parents=True, exist_ok=True)
    folders.attempt.write_text(json.dumps(attempt), encoding="utf-8")
    return resumes


def _write_description(competition: Competition, public: Path, options: Options) -> FileEntry:
    text = competition.description
    if options.original_description:
        from mlebench.data.kaggle import original_description

        text = with_submission_rules(original_description(competition), competition)
    path = public / paths.DESCRIPTION
    content = text.encode("utf-8")
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(MODE)
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return f"{paths.PUBLIC}/{paths.DESCRIPTION}", {"size": len(content), "md5": md5}


def _check_complete(competition: Competition) -> None:
    folders = competition.paths
    for key in ("answers", "sample_submission"):
        path = getattr(competition, key)
        if not (staged := paths.moved(path, folders.prepared, folders.staging)).is_file():
            name, beside = paths.moved(path, folders.prepared, Path()), staged.parent
            written = [entry.name for entry in islice(sorted(beside.iterdir()), 9)] if beside.is_dir() else []
            raise CompetitionError(
                f"`dataset.{key}` is {name}, which {paths.PREPARE} did not write; in {name.parent}/ it wrote "
                f"{', '.join(written) or 'nothing'}",
                paths.CONFIG,
            )


@contextmanager
def _locked(folders: paths.CompetitionPaths, watch: Progress) -> Iterator[Callable[[], None]]:
    folders.root.mkdir(parents=True, exist_ok=True)

    def waiting() -> None:
        logger.info("Waiting: another process is preparing %s", folders.id)
        watch.tell("waiting for another process")

    with held(folders.lock, waiting) as require_lock:
        yield require_lock
