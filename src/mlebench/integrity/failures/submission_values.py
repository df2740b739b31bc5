"""What a submission's values give away: that they are the sample's, constant, inverted or on a different scale."""

import csv
import hashlib
import io
import logging
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import UntrustedFileError, open_untrusted
from mlebench.grade import grade_csv
from mlebench.integrity.failures.rules import LEAST_HONEST_AUC, MISREAD_FACTOR
from mlebench.registry import Competition
from mlebench.validate.submission_table import has_few_columns

LARGEST = 32 << 20  # bytes; larger submissions are not inspected
MOST_ROWS = 1_000_000  # to change and grade again
BEST_IS_ONE = 1.0


class Rows(NamedTuple):
    header: list[str]
    rows: Iterator[list[str]]


def read_rows(path: Path) -> Rows | None:
    """The cells of a submission; None if it is not a table of reasonable size."""
    try:
        with open_untrusted(path, LARGEST) as file:
            return _rows(file.read(LARGEST))
    except (UntrustedFileError, PrerequisiteError, OSError):
        return None


def _rows(content: bytes) -> Rows | None:
    if not has_few_columns(content):
        return None
    rows = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""))
    try:
        header = next(rows, None)
    except csv.Error:
        return None
    return Rows(header, _until_broken(rows)) if header else None


def _until_broken(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from rows
    except csv.Error:
        return


def trivial(path: Path, competition: Competition | None) -> str | None:
    """Why a submission shows no work: it is the sample submission, or one value in all rows."""
    submission = read_rows(path)
    if submission is None:
        return None
    id = (competition.submission.get("id") if competition else None) or submission.header[0]
    digest, rows, values = _summary(submission, id)
    if competition is not None and rows and digest == _sample_digest(competition, id):
        return "the submission is the sample submission"
    if rows > 1 and values is not None:
        return f"all {rows} rows have the same prediction: {', '.join(values)[:80]}"
    return None


def _summary(table: Rows, id: str) -> tuple[int, int, list[str] | None]:
    """A digest that ignores the order of rows, their number, and the prediction that all share, if any."""
    ids = [index for index, name in enumerate(table.header) if name == id] or [0]
    digest, rows = 0, 0
    first: list[str] | None = None
    same = True
    for row in table.rows:
        if not row:
            continue
        cells = [_canonical(cell) for cell in row]
        predicted = [cell for index, cell in enumerate(cells) if index not in ids]
        text = "\0".join([*(row[index] for index in ids if index < len(row)), *predicted])
        digest += int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())
        first = predicted if first is None else first
        same = same and predicted == first
        rows += 1
    return digest, rows, first if same else None


def _canonical(cell: str) -> str:
    try:
        return repr(float(cell))
    except ValueError:
        return cell.strip()


def _sample_digest(competition: Competition, id: str) -> int | None:
    from mlebench.kit.samples import public_sample_bytes

    try:
        sample = _rows(public_sample_bytes(competition))
    except (PrerequisiteError, OSError, ValueError):
        return None
    return _summary(sample, id)[0] if sample else None


# Predictions that were misread

Change = Callable[[float], float]

TURNED: dict[str, Change] = {"inverted (1 - p)": lambda value: 1 - value}
RESCALED: dict[str, Change] = {
    "after exp(x) - 1": math.expm1,
    "after exp(x)": math.exp,
    "after 10 ** x": lambda value: 10.0**value,
    "divided by 100": lambda value: value / 100,
    "multiplied by 100": lambda value: value * 100,
    "divided by 1000": lambda value: value / 1000,
    "multiplied by 1000": lambda value: value * 1000,
    "with the other sign": lambda value: -value,
}
OPPOSITES = {"True": "False", "False": "True", "true": "false", "false": "true"}


def misread(path: Path, score: float, competition: Competition) -> str | None:
    """What would have made the score much better, if it is worse than the sample submission's.

    Changed predictions are graded, which leaves lines in the log of grades, like every look at the answers.
    """
    try:
        if not _worse(score, _sample_score(competition), competition):
            return None
        submission = read_rows(path)
        if submission is None:
            return None
        rows = list(islice((row for row in submission.rows if row), MOST_ROWS + 1))
        return _better_when(submission.header, rows, score, competition) if len(rows) <= MOST_ROWS else None
    except (PrerequisiteError, OSError):
        return None


def turned_round(score: float, competition: Competition) -> str | None:
    """Say how the metric was misread, as far as that can be determined without data."""
    metric = competition.grader.name.lower()
    if score < LEAST_HONEST_AUC and ("auc" in metric or "roc" in metric):
        return f"score {score:g} is far below the 0.5 of a guess: most likely, the predictions are inverted"
    return None


def _better_when(header: list[str], rows: list[list[str]], score: float, competition: Competition) -> str | None:
    targets = competition.submission.get("targets") or header[1:]
    columns = [index for index, name in enumerate(header) if name in targets]
    best: tuple[float, str] | None = None
    for name, changed in _changes(rows, columns):
        changed_score = _graded([header, *changed], competition)
        if changed_score is None or error_of(changed_score, competition) > MISREAD_FACTOR * error_of(
            score, competition
        ):
            continue
        if best is None or error_of(changed_score, competition) < error_of(best[0], competition):
            best = changed_score, name
    return None if best is None else f"the predictions {best[1]} would have scored {best[0]:g} instead of {score:g}"


def _changes(rows: list[list[str]], columns: Sequence[int]) -> Iterator[tuple[str, list[list[str]]]]:
    cells = {row[index] for row in rows for index in columns if index < len(row)}
    if cells and cells <= OPPOSITES.keys():
        yield "inverted", [_changed(row, columns, OPPOSITES.__getitem__) for row in rows]
        return
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return
    shares = all(0 <= number <= 1 for number in numbers)
    for name, change in ({**TURNED, **RESCALED} if shares else RESCALED).items():
        try:
            yield name, [_changed(row, columns, lambda cell, change=change: repr(change(float(cell)))) for row in rows]
        except (OverflowError, ValueError):
            continue


def _changed(row: list[str], columns: Sequence[int], change: Callable[[str], str]) -> list[str]:
    return [change(cell) if index in columns else cell for index, cell in enumerate(row)]


def _graded(rows: list[list[str]], competition: Competition) -> float | None:
    with tempfile.TemporaryDirectory(prefix=paths.SCRATCH) as scratch:
        path = paths.RunPaths(Path(scratch)).submission
        path.parent.mkdir()
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        with _quiet():
            score = grade_csv(path, competition, fallback_log_dir=Path(scratch)).score
    return score if score is not None and math.isfinite(score) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Do not report that a changed submission is invalid."""
    log = logging.getLogger("mlebench.grade")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _sample_score(competition: Competition) -> float | None:
    """Published for real data; for a twin, the sample submission is graded."""
    from mlebench.data.state import source_kind
    from mlebench.kit.samples import public_sample_bytes

    if source_kind(competition) != "twin" and competition.sample_score is not None:
        return competition.sample_score
    sample = _rows(public_sample_bytes(competition))
    return _graded([sample.header, *sample.rows], competition) if sample else None


def _worse(score: float, other: float | None, competition: Competition) -> bool:
    return other is not None and (score > other if competition.lower_is_better else score < other)


def error_of(score: float, competition: Competition) -> float:
    """How far a score is from the best: the distance from 1 if that is the best, otherwise the value."""
    return score if competition.lower_is_better else BEST_IS_ONE - score if score <= BEST_IS_ONE else 1 / score
