"""Reading answers, in the dialect of the tables they were made from."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def load_answers(path_to_answers: Path) -> Any:
    """Answers: a data frame from CSV, a list of records from JSON lines."""
    if path_to_answers.suffix == ".csv":
        from mlebench.engine.frames import read_frame

        return read_frame(path_to_answers)
    if path_to_answers.suffix == ".jsonl":
        return read_jsonl(path_to_answers)
    raise ValueError(f"answers must be .csv or .jsonl, not {path_to_answers.name}")


def read_jsonl(file_path: Path | str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """One JSON value a line; on request, blank lines and those that begin with # or // are passed over."""
    with Path(file_path).open(encoding="utf-8") as file:
        lines: Iterable[str] = file
        if skip_commented_out_lines:
            lines = (line for line in map(str.strip, file) if line and not line.startswith(("#", "//")))
        return [json.loads(line) for line in lines]
