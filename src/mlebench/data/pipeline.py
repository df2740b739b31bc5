"""Raw → prepared: everything is made in a staging folder, checked, and appears in one rename.

An interrupted or failed prepare leaves nothing that looks prepared. Two prepares of one competition take turns.
"""

import errno
import fcntl
import json
import logging
import os
import platform
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlebench import paths
from mlebench.data.sources import LocalSource, Source, TwinSource
from mlebench.data.state import claim_data_dir, preparation_fault, read_manifest
from mlebench.data.verification import check_archive, check_prepared, overwrite
from mlebench.errors import PrerequisiteError
from mlebench.registry import Competition

logger = logging.getLogger(__name__)


def prepare(
    competition: Competition,
    source: Source | None = None,
    *,
    keep_raw: bool = True,
    verify: bool = True,
    overwrite_checksums: bool = False,
) -> bool:
    """Prepare a competition's data; False when it had been prepared already."""
    source = source or LocalSource()
    where = competition.paths
    claim_data_dir(where.data_dir, twin=source.twin)
    with _explained(where.root), _locked(where):
        if not overwrite_checksums and _is_ready(competition, source):
            return False
        _clear(competition)
        raw = source.fetch(competition)
        checked = verify and not source.twin
        if checked and not overwrite_checksums and raw.is_file():
            check_archive(competition, raw)
        hashes = _stage(competition, raw, keep_raw)
        files = _write_manifest(competition, source, hashes)
        if overwrite_checksums:
            overwrite(competition, raw, files)
        elif checked:
            check_prepared(competition, files)
        if where.prepared.exists():
            shutil.rmtree(where.prepared)
        where.staging.rename(where.prepared)
    return True


def _is_ready(competition: Competition, source: Source) -> bool:
    if preparation_fault(competition) is not None:
        return False
    manifest = read_manifest(competition)
    if isinstance(source, TwinSource):
        return manifest is not None and source.matches(manifest["source"])
    return True


def _clear(competition: Competition) -> None:
    """Remove what an earlier attempt of ours left; what somebody else made is not ours to remove."""
    where = competition.paths
    if where.staging.exists():
        shutil.rmtree(where.staging)
    if not where.prepared.exists() or read_manifest(competition) is not None:
        return
    if any(path.is_file() for path in where.prepared.rglob("*")):
        raise PrerequisiteError(
            f"{where.prepared} is incomplete ({preparation_fault(competition)}) and was not made by this program: "
            f"remove it and prepare again"
        )


def _stage(competition: Competition, raw: Path, keep_raw: bool) -> dict[str, str]:
    """Fill the staging folder; the md5 of each file that a kit-style `prepare` wrote."""
    where = competition.paths
    folders = where.staging / paths.PUBLIC, where.staging / paths.PRIVATE
    for folder in folders:
        folder.mkdir(parents=True)
    unpacked = raw.is_file() and getattr(competition.prepare_fn, "takes_paths", True)
    if unpacked:
        logger.info("Unpacking %s", raw)
        raw = _unpack(raw, where)
    logger.info("Preparing %s", competition.id)
    hashes = competition.prepare_fn(raw=raw, public=folders[0], private=folders[1])
    if unpacked and not keep_raw:
        shutil.rmtree(raw)
    (folders[0] / "description.md").write_text(competition.description, encoding="utf-8")
    for path in (competition.answers, competition.sample_submission):
        relative = path.relative_to(where.prepared)
        if not (where.staging / relative).is_file():
            raise RuntimeError(f"prepare of {competition.id} did not write {relative}")
    return hashes if isinstance(hashes, dict) else {}


def _unpack(archive: Path, where: paths.CompetitionPaths) -> Path:
    if where.raw_staging.exists():
        shutil.rmtree(where.raw_staging)
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(where.raw_staging)
    except (zipfile.BadZipFile, EOFError) as error:
        raise PrerequisiteError(f"{archive} cannot be read ({error}); get the archive again") from error
    if where.raw.exists():
        where.raw.rmdir()
    return where.raw_staging.rename(where.raw)


def _write_manifest(competition: Competition, source: Source, hashes: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Record what lies in staging: size and time of each file, and the hash of those that we wrote ourselves."""
    from importlib.metadata import version

    staging = competition.paths.staging
    files: dict[str, dict[str, Any]] = {}
    for path in sorted(path for path in staging.rglob("*") if path.is_file()):
        name, status = path.relative_to(staging).as_posix(), path.stat()
        files[name] = {"size": status.st_size} | (
            {"md5": hashes[name]} if name in hashes else {"mtime_ns": status.st_mtime_ns}
        )
    manifest = {
        "competition": competition.id,
        "profile": competition.profile,
        "source": source.describe(),
        "prepared_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("mlebench", "pandas", "numpy")},
        "files": files,
    }
    (staging / paths.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return files


@contextmanager
def _locked(where: paths.CompetitionPaths) -> Iterator[None]:
    where.root.mkdir(parents=True, exist_ok=True)
    with where.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("Waiting: another process is preparing %s", where.id)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Faults of a disk are for the person at the keyboard, not a traceback."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the disk is read-only",
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.ENOTDIR: "a part of the path is not a folder",
        errno.EEXIST: "something else is there",
    }
    try:
        yield
    except OSError as error:
        if error.errno not in reasons:
            raise
        where = os.fspath(error.filename) if error.filename else folder
        raise PrerequisiteError(f"cannot write to {where}: {reasons[error.errno]}") from error
