"""Grading reports in a folder: ours, the reference's, or those of others in its form."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import is_grading_report, time_in
from mlebench.records.base import fault_of
from mlebench.records.report import Report


def newest_report(folder: Path) -> Path | None:
    """The newest grading report in a folder, by the time in its name or else of the file."""
    try:
        reports = [path for path in folder.iterdir() if is_grading_report(path.name) and path.is_file()]
        return max(reports, key=_time_of, default=None)
    except OSError as error:
        raise PrerequisiteError(f"cannot read {folder}: {reason_of(error)}") from error


def _time_of(path: Path) -> tuple[str, int, str]:
    written = path.stat().st_mtime_ns
    return time_in(path.name) or datetime.fromtimestamp(written // 10**9, UTC).isoformat(), written, path.name


def read_grading_report(path: Path) -> list[Report]:
    """The reports of single submissions that a grading report holds: ours, or the reference's."""
    content = b""
    try:
        content = path.read_bytes()
        data = json.loads(content)
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error
    except (ValueError, RecursionError) as error:
        fault = LFS_POINTER if is_lfs_pointer(content) else f"is not JSON: {error}"
        raise PrerequisiteError(f"{path} {fault}") from None
    rows = data.get("competition_reports") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise PrerequisiteError(f"{path} is not a grading report: it has no list `competition_reports`")
    return [_report(row, path, number) for number, row in enumerate(rows, 1)]


def _report(row: Any, path: Path, number: int) -> Report:
    id = row.get("competition_id") if isinstance(row, dict) else None
    if not isinstance(id, str) or not is_folder_name(id):
        raise PrerequisiteError(f"{path}: report {number} names no competition")
    try:
        return msgspec.convert(row, Report)
    except msgspec.ValidationError as error:
        raise PrerequisiteError(f"{path}: in report {number}, {fault_of(error)}") from None


def is_folder_name(text: str) -> bool:
    """Whether a competition's folder could have this name."""
    try:
        return 0 < len(text.encode()) < 256 and "/" not in text and "\0" not in text
    except UnicodeEncodeError:
        return False
