"""Many submissions → one summary. One that cannot be graded does not stop the others."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mlebench.errors import NotPreparedError, PrerequisiteError
from mlebench.grade.one import grade_csv, make_report
from mlebench.paths import timestamp, write_whole
from mlebench.registry import Registry
from mlebench.registry import registry as default_registry
from mlebench.scoring import CompetitionReport
from mlebench.validate.reading import read_jsonl

logger = logging.getLogger(__name__)

Tracker = Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]]


def grade_jsonl(
    path_to_submissions: Path, output_dir: Path, registry: Registry = default_registry, track: Tracker = iter
) -> dict[str, Any]:
    """Grade the submissions that a JSON-lines file names; write `<timestamp>_grading_report.json` and return it."""
    entries = read_entries(Path(path_to_submissions))
    summary = aggregate_reports(list(_reports(track(entries), registry)))
    output_dir = Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    path = output_dir / f"{timestamp()}_grading_report.json"
    write_whole(path, json.dumps(summary, indent=2))
    logger.info("Saved summary report to %s", path)
    return summary


def read_entries(path: Path) -> list[dict[str, Any]]:
    try:
        entries = read_jsonl(path, skip_commented_out_lines=True)
        missing = [
            number for number, entry in enumerate(entries, 1) if not {"competition_id", "submission_path"} <= set(entry)
        ]
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise PrerequisiteError(f"{path} is not JSON lines: {error}") from error
    if missing:
        raise PrerequisiteError(f"{path}: entry {missing[0]} needs `competition_id` and `submission_path`")
    return entries


def _reports(entries: Iterable[dict[str, Any]], registry: Registry) -> Iterator[CompetitionReport]:
    for entry in entries:
        competition = registry.get_competition(entry["competition_id"])
        path = Path(str(entry["submission_path"]))
        try:
            yield grade_csv(path, competition)
        except NotPreparedError as error:
            logger.error("%s", error)
            yield make_report(path, competition, "not_prepared", None, str(error))


def aggregate_reports(competition_reports: list[CompetitionReport]) -> dict[str, Any]:
    """Counts over reports, and the reports themselves."""

    def count(name: str) -> int:
        return sum(bool(getattr(report, name)) for report in competition_reports)

    medals = {f"total_{kind}_medals": count(f"{kind}_medal") for kind in ("gold", "silver", "bronze")}
    return {
        "total_runs": len(competition_reports),
        "total_runs_with_submissions": count("submission_exists"),
        "total_valid_submissions": count("valid_submission"),
        "total_medals": sum(medals.values()),
        **medals,
        "total_above_median": count("above_median"),
        "competition_reports": [report.to_dict() for report in competition_reports],
    }
