"""Grading reports in a folder: ours, the reference's, or those of others in its form."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.faults import reason_of
from mlebench.files import LFS_POINTER, is_lfs_pointer
from mlebench.paths import is_grading_report, time_in


def newest_report(folder: Path) -> Path | None:
    """The newest grading report in a folder, by the time in its name or else of the file."""
    try:
        found = [path for path in folder.iterdir() if is_grading_report(path.name) and path.is_file()]
        return max(found, key=_time_of, default=None)
    except OSError as error:
        raise PrerequisiteError(f"cannot read {folder}: {reason_of(error)}") from error


def _time_of(path: Path) -> tuple[str, int, str]:
    written = path.stat().st_mtime_ns
    return time_in(path.name) or datetime.fromtimestamp(written // 10**9, UTC).isoformat(), written, path.name


def read_grading_report(path: Path) -> list[dict[str, Any]]:
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
    reports = data.get("competition_reports") if isinstance(data, dict) else None
    if not isinstance(reports, list):
        raise PrerequisiteError(f"{path} is not a grading report: it has no list `competition_reports`")
    for number, report in enumerate(reports, 1):
        if not isinstance(report, dict) or not _can_be_an_id(report.get("competition_id")):
            raise PrerequisiteError(f"{path}: report {number} names no competition")
        for what, (fits, names) in _FIELDS.items():
            for name in names:
                if report.get(name) is not None and not fits(report[name]):
                    raise PrerequisiteError(f"{path}: in report {number}, {name} is not {what}")
    return reports


def _can_be_an_id(value: Any) -> bool:
    """Whether a competition's folder could have this name."""
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "replace")) < 256 and not _is_broken(value)


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)  # no file can hold it


def _is_number(value: Any) -> bool:
    if not isinstance(value, int):
        return isinstance(value, float)
    return not isinstance(value, bool) and abs(value) <= sys.float_info.max


# What standings read of a report. A flag written as text, such as "False", would count as true.
_FIELDS: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "a number": (_is_number, ("score", "gold_threshold", "percentile")),
    "text": (
        lambda value: isinstance(value, str) and not _is_broken(value),
        ("agent", "profile", "source", "status", "run_id"),
    ),
    "true or false": (
        lambda value: isinstance(value, bool),
        ("submission_exists", "valid_submission", "above_median", "bronze_medal", "silver_medal", "gold_medal"),
    ),
}
