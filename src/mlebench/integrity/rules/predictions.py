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
    found = Predictions(is_whole=len(data) <= MOST_BYTES)
    if not found.is_whole:
        data = data[: data.rfind(b"\n", 0, MOST_BYTES) + 1]
    if not has_few_columns(data):
        return None
    csv.field_size_limit(LONGEST_FIELD)
    lines = csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""))
    try:
        found.header = tuple(next(lines, ()))
        if len(found.header) < 2:
            return None
        _take(found, lines, [name in ids for name in found.header] if set(ids) & set(found.header) else None)
    except csv.Error:
        return None
    return found


def _take(found: Predictions, lines: Iterator[list[str]], marked: list[bool] | None) -> None:
    marked = marked or [True, *[False] * (len(found.header) - 1)]
    keys = [place for place, is_key in enumerate(marked) if is_key]
    targets = [place for place, is_key in enumerate(marked) if not is_key]
    found.columns = [[] for _ in targets]
    chance, first = random.Random(0), None
    for line in lines:
        if len(line) != len(marked):
            continue
        cells = [canonical(cell) for cell in line]
        predicted = tuple(cells[place] for place in targets)
        row = hash(tuple(cells))
        found.in_order = hash((found.in_order, row))
        found.in_any_order = (found.in_any_order + row) & (1 << 64) - 1
        found.dealt_anyhow = (found.dealt_anyhow + hash(predicted)) & (1 << 64) - 1
        first = predicted if first is None else first
        found.is_constant &= predicted == first
        _keep(found, cells[keys[-1]], predicted, chance)
        found.rows += 1
    if found.rows > MOST_IN_ORDER:
        found.columns = []


def _keep(found: Predictions, key: str, predicted: tuple[str, ...], chance: random.Random) -> None:
    """Keep a sample of all rows, each with the same chance."""
    if found.rows < MOST_SOUGHT:
        found.sought.append((key, predicted))
    elif (place := chance.randrange(found.rows + 1)) < MOST_SOUGHT:
        found.sought[place] = (key, predicted)
    if found.rows <= MOST_IN_ORDER:
        for column, value in zip(found.columns, predicted, strict=True):
            column.append(value)
