"""When competitions ended, compared with the day a model's training data ends."""

import csv
import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import CONFIG
from mlebench.registry import Competition

BEFORE, AFTER, UNKNOWN = "before", "after", "unknown"
META_KAGGLE = "Meta Kaggle"
_CUTOFF = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


@dataclass(frozen=True)
class Deadline:
    day: date | None = None
    source: str | None = None

    def against(self, cutoff: date | None) -> str:
        """Whether the competition was closed by the cut-off, and so its notebooks and discussions were public."""
        if self.day is None or cutoff is None:
            return UNKNOWN
        return BEFORE if self.day <= cutoff else AFTER


def parse_cutoff(text: str) -> date:
    """A month means its last day."""
    match = _CUTOFF.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        year, month = int(match[1]), int(match[2])
        return date(year, month, int(match[3]) if match[3] else monthrange(year, month)[1])
    except ValueError:
        raise PrerequisiteError(f"--cutoff: {text!r} is not a month or a day; write 2024-06 or 2024-06-30") from None


def read_meta_kaggle(path: Path) -> dict[str, date]:
    """The deadlines in Competitions.csv of Kaggle's dataset Meta Kaggle, by slug in lower case."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"Slug", "DeadlineDate"} <= set(rows.fieldnames or ()):
                raise PrerequisiteError(f"{path} needs the columns Slug and DeadlineDate: give Competitions.csv")
            deadlines = {row["Slug"].lower(): _day(row["DeadlineDate"]) for row in rows if row["Slug"]}
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise PrerequisiteError(f"{path} is not a CSV file: {error}") from None
    return {slug: day for slug, day in deadlines.items() if day}


def _day(text: str | None) -> date | None:
    for form in ("%m/%d/%Y", "%Y-%m-%d"):
        try:
            return datetime.strptime((text or "").split(" ")[0], form).date()
        except ValueError:
            continue
    return None


def deadline_of(competition: Competition, meta: dict[str, date]) -> Deadline:
    """Our own fact, or else Kaggle's table."""
    if competition.deadline:
        return Deadline(competition.deadline, CONFIG)
    day = meta.get(competition.id.lower())
    return Deadline(day, META_KAGGLE) if day else Deadline()
