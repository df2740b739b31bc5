"""Reading answers, in the dialect of the tables they were made from."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench.registry import Competition


def load_answers(path_to_answers: Path) -> Any:
    """Answers: a data frame from CSV, a list of records from JSON lines."""
    if path_to_answers.suffix == ".csv":
        from mlebench.engine.frames import read_frame

        return read_frame(path_to_answers)
    return list(_records(path_to_answers))


def answers_for_grader(competition: Competition) -> Any:
    """Answers as the grader gets them: tables of the types of its profile, records read while it iterates over them."""
    if competition.answers.suffix != ".csv":
        return _records(competition.answers)
    from mlebench.kit.submission_form import read_answers

    return read_answers(competition)


def _records(path: Path) -> "JsonRecords":
    if path.suffix != ".jsonl":
        raise ValueError(f"answers must be .csv or .jsonl, not {path.name}")
    return JsonRecords(path)


class JsonRecords(Sequence[dict[str, Any]]):
    """The records of a file of JSON lines. Iterating holds one in memory at a time; indexing loads them all."""

    def __init__(self, path: Path):
        self._path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self._path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    @cached_property
    def _all(self) -> list[dict[str, Any]]:
        return list(self)

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        with self._path.open(encoding="utf-8") as file:
            return sum(1 for _ in file)


def read_jsonl(file_path: Path | str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """One JSON value per line; on request, blank lines and those that begin with # or // are skipped."""
    with Path(file_path).open(encoding="utf-8") as file:
        lines: Iterable[str] = file
        if skip_commented_out_lines:
            lines = (line for line in map(str.strip, file) if line and not line.startswith(("#", "//")))
        return [json.loads(line) for line in lines]
