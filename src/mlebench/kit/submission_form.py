"""The form of every submission under profile v2: columns by name, rows by id, each cell of the declared kind.

A submission is compared with the public sample submission alone, so that a refusal says nothing about the answers. A
grader then gets a table with the sample's rows, in the sample's order, and columns of one type each. Profile v1 has no
such form: there each grader checks what the reference's checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.submission_columns import Kind, SubmissionColumns
from mlebench.core.suggestions import did_you_mean
from mlebench.engine.frames import NA_TOKENS, read_frame
from mlebench.kit.samples import HasSubmissionFacts, public_sample_bytes, sample_stand_in

_WHOLE = r"(?:0|-?[1-9][0-9]{0,17})"  # a number that has one spelling and fits 64 bits
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_SHOWN = 40  # characters of a cell in a message


class HasProfile(HasSubmissionFacts, Protocol):
    @property
    def profile(self) -> str: ...
    @property
    def answers(self) -> Path: ...


def read_submission(source: Any, competition: HasProfile) -> pd.DataFrame:
    """A submission, from a path or a stream, as its grader gets it; under v2 it must have the form of the sample."""
    if competition.profile == "v1":
        return read_frame(source)
    return SubmissionForm.of(competition).read(source)


def read_answers(competition: HasProfile) -> pd.DataFrame:
    """The answers in CSV; under v2, with ids and text of the same types as a submission's."""
    if competition.profile == "v1":
        return read_frame(competition.answers)
    return SubmissionForm.of(competition).read_answers(competition.answers)


def stand_in_of_sample(competition: HasProfile) -> pd.DataFrame:
    """The sample submission in place of the answers; under v2, with ids of the same types as a submission's."""
    sample = sample_stand_in(competition)
    return sample if competition.profile == "v1" else sample.assign(**SubmissionForm.of(competition).ids)


@dataclass(frozen=True)
class SubmissionForm:
    """What a submission must look like, declared by `submission` in config.yaml and shown by the sample submission."""

    key: tuple[str, ...]  # the columns that identify a row
    kinds: Mapping[str, Kind]  # of each predicted column
    sample: bytes

    @classmethod
    def of(cls, competition: HasProfile) -> "SubmissionForm":
        return cls(*SubmissionColumns.of(competition), public_sample_bytes(competition))

    def read(self, source: Any) -> pd.DataFrame:
        """The rows of the sample in its order, with the submission's predictions; raises if anything is wrong."""
        texts = _read_text(source)
        self._require_columns([*texts])
        order = self._rows_of_sample(texts)
        predicted = {name: _CONVERTERS[kind](name, texts[name][order]) for name, kind in self.kinds.items()}
        return pd.DataFrame({**self.ids, **predicted})

    def read_answers(self, path: Path) -> pd.DataFrame:
        """Answers in CSV, with ids and text of the same types as a submission's."""
        header = pd.read_csv(path, nrows=0).columns
        as_text = [name for name in header if name in self.key or self.kinds.get(name) == "text"]
        na_values = {name: [*NA_TOKENS] for name in header if name not in as_text}
        answers = read_frame(path, dtype=dict.fromkeys(as_text, str), keep_default_na=False, na_values=na_values)
        return answers.astype({name: ids.dtype for name, ids in self.ids.items() if name in answers})

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """The sample's columns of ids: numbers if each is a whole number with one spelling, otherwise text."""
        sample = _read_text(BytesIO(self.sample))
        return {name: _as_whole(sample[name]) if _are_whole(sample[name]) else sample[name] for name in self.key}

    def _require_columns(self, columns: list[str]) -> None:
        wanted = [*self.key, *self.kinds]
        if missing := [name for name in wanted if name not in columns]:
            raise InvalidSubmissionError(f"Submission is missing the following columns: {', '.join(missing)}.")
        if unknown := [name for name in columns if name not in wanted]:
            advice = did_you_mean(_short(unknown[0]), wanted, f"the columns are {', '.join(wanted[:9])}")
            raise InvalidSubmissionError(f"Submission has a column too many, {_short(unknown[0])!r}; {advice}.")

    def _rows_of_sample(self, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """For each row of the sample, the number of the submission's row with its id."""
        columns = [_like(self.ids[name], texts[name]) for name in self.key]
        if all(map(np.array_equal, columns, self.ids.values())):  # a table of millions of ids takes gigabytes
            return np.arange(len(columns[0]))
        wanted, ids = _index([*self.ids.values()]), _index(columns)
        for fault, wrong in (("is unknown", ~ids.isin(wanted)), ("is repeated", ids.duplicated())):
            if wrong.any():
                row = int(np.argmax(wrong))
                id = self._shown(texts, row)
                raise InvalidSubmissionError(
                    f"{id}, in row {row + 1}, {fault}: give each row of the sample submission once."
                )
        order = ids.get_indexer(wanted)
        if (absent := order < 0).any():
            id = self._shown(self.ids, int(np.argmax(absent)))
            raise InvalidSubmissionError(
                f"{absent.sum()} rows of the sample submission are missing; the first is {id}."
            )
        return order

    def _shown(self, columns: Mapping[str, np.ndarray], row: int) -> str:
        return ", ".join(f"`{name}` {_short(str(columns[name][row]))!r}" for name in self.key)


def _read_text(source: Any) -> dict[str, np.ndarray]:
    """The columns of a CSV file, every cell as it is spelled; an empty cell is an empty text."""
    frame = pd.read_csv(source, dtype=str, keep_default_na=False, na_filter=False)
    if not isinstance(frame.index, pd.RangeIndex):  # which is how pandas reads rows that are longer than the header
        raise InvalidSubmissionError("Submission has rows with more cells than it has columns.")
    return {str(name): column.to_numpy(object) for name, column in frame.items()}


def _are_whole(cells: np.ndarray) -> bool:
    return bool(pd.Series(cells, dtype=object).str.fullmatch(_WHOLE).all())


def _as_whole(cells: np.ndarray) -> np.ndarray:
    return cells.astype(np.int64)


def _like(ids: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """A submission's ids; `7.0` is 7 where ids are numbers. What is no number stays text, and so matches nothing."""
    if ids.dtype == object:
        return cells
    return (
        _as_whole(cells)
        if _are_whole(cells)
        else np.array([cell if (number := _whole(cell)) is None else number for cell in cells], dtype=object)
    )


def _whole(cell: str) -> int | None:
    """The whole number that a cell spells, as `7` or `7.0`; None for anything else."""
    try:
        number = int(cell)
    except ValueError:
        value = _number(cell)
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    return number if abs(number) < 2**63 else None


def _index(columns: list[np.ndarray]) -> pd.Index:
    return pd.Index(columns[0]) if len(columns) == 1 else pd.MultiIndex.from_arrays(columns)


def _numbers(name: str, cells: np.ndarray) -> np.ndarray:
    try:
        numbers = cells.astype(np.float64)
    except (OverflowError, ValueError):
        numbers = np.array([_number(cell) for cell in cells])
    return _require(name, cells, numbers, np.isfinite(numbers), "a finite number")


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _integers(name: str, cells: np.ndarray) -> np.ndarray:
    try:
        return _as_whole(cells)
    except (OverflowError, ValueError):
        numbers = [_whole(cell) for cell in cells]
    known = np.array([number is not None for number in numbers], dtype=bool)
    return _as_whole(_require(name, cells, np.array(numbers, dtype=object), known, "a whole number"))


def _booleans(name: str, cells: np.ndarray) -> np.ndarray:
    values = [_BOOLEANS.get(cell.strip().lower()) for cell in cells]
    known = np.array([value is not None for value in values], dtype=bool)
    return _require(name, cells, np.array(values), known, "True or False").astype(bool)


def _require(name: str, cells: np.ndarray, values: np.ndarray, right: np.ndarray, what: str) -> np.ndarray:
    if not right.all():
        cell = _short(cells[int(np.argmin(right))])
        raise InvalidSubmissionError(f"Column `{name}` must hold {what} in every row; it holds {cell!r}.")
    return values


def _short(cell: str) -> str:
    return cell if len(cell) <= _SHOWN else f"{cell[: _SHOWN - 3]}..."


_CONVERTERS: dict[Kind, Callable[[str, np.ndarray], np.ndarray]] = {
    "numbers": _numbers,
    "integers": _integers,
    "booleans": _booleans,
    "text": lambda _, cells: cells,
}
