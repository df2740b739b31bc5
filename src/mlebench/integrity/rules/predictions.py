"""A submission as detectors need it: hashes of its rows, and a sample of them to look for. Read once, in order."""

import csv
import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from mlebench.validate.submission_table import has_few_columns

MOST_BYTES = 64 << 20  # read of a submission
MOST_SOUGHT = 20_000  # rows to look for; a random sample if there are more
MOST_IN_ORDER = 200_000  # rows whose order is kept
LONGEST_FIELD = 16 << 20
_DIGITS = 15  # that a float can hold


@dataclass
class Predictions:
    header: tuple[str, ...] = ()
    rows: int = 0
    is_whole: bool = True  # the whole file was read
    in_order: int = 0  # a hash of the rows in their order …
    in_any_order: int = 0  # … and in any
    dealt_anyhow: int = 0  # a hash of the predictions, regardless of their rows
    is_constant: bool = True
    sought: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # ids and predictions
    columns: list[list[str]] = field(default_factory=list)  # the predictions in order, if there are not too many


def canonical(cell: str) -> str:
    """A cell in the form that is compared: a number is the same however it is written."""
    cell = cell.strip()
    if "_" in cell or (len(cell) > _DIGITS and cell.isdigit()):  # Python would read `12_34` as a number
        return cell
    try:
        return repr(float(cell))
    except ValueError:
        return cell


def read_predictions(file: IO[bytes], ids: Sequence[str] = ()) -> Predictions | None:
    """None if it is not a table. `ids` are the columns that name a row; by default the first."""
    data = file.read(MOST_BYTES + 1)
    predictions = Predictions(is_whole=len(data) <= MOST_BYTES)
    if not predictions.is_whole:
        data = data[: data.rfind(b"\n", 0, MOST_BYTES) + 1]
    if not has_few_columns(data):
        return None
    csv.field_size_limit(LONGEST_FIELD)
    lines = csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""))
    try:
        predictions.header = tuple(next(lines, ()))
        if len(predictions.header) < 2:
            return None
        marked = [name in ids for name in predictions.header] if set(ids) & set(predictions.header) else None
        _take(predictions, lines, marked)
    except csv.Error:
        return None
    return predictions


def _take(predictions: Predictions, lines: Iterator[list[str]], marked: list[bool] | None) -> None:
    marked = marked or [True, *[False] * (len(predictions.header) - 1)]
    keys = [column for column, is_key in enumerate(marked) if is_key]
    targets = [column for column, is_key in enumerate(marked) if not is_key]
    predictions.columns = [[] for _ in targets]
    chance, first = random.Random(0), None
    for line in lines:
        if len(line) != len(marked):
            continue
        cells = [canonical(cell) for cell in line]
        predicted = tuple(cells[column] for column in targets)
        row = hash(tuple(cells))
        predictions.in_order = hash((predictions.in_order, row))
        predictions.in_any_order = (predictions.in_any_order + row) & (1 << 64) - 1
        predictions.dealt_anyhow = (predictions.dealt_anyhow + hash(predicted)) & (1 << 64) - 1
        first = predicted if first is None else first
        predictions.is_constant &= predicted == first
        _keep(predictions, cells[keys[-1]], predicted, chance)
        predictions.rows += 1
    if predictions.rows > MOST_IN_ORDER:
        predictions.columns = []


def _keep(predictions: Predictions, key: str, predicted: tuple[str, ...], chance: random.Random) -> None:
    """Keep a sample of all rows, each with the same chance."""
    if predictions.rows < MOST_SOUGHT:
        predictions.sought.append((key, predicted))
    elif (slot := chance.randrange(predictions.rows + 1)) < MOST_SOUGHT:
        predictions.sought[slot] = (key, predicted)
    if predictions.rows <= MOST_IN_ORDER:
        for column, value in zip(predictions.columns, predicted, strict=True):
            column.append(value)
