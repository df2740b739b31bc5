"""Finds the truth about the targets: in columns of the same or a similar name, or in names of folders or files."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
from files import File, Files
from tables import DataTable

CLASS = "class of the row"
POSITION = "position"
USUAL_NAMES = ("target", "label", "labels", "class", "category", "category_id", "y")
NO_CLASS_FOLDERS = ("images", "image", "audio", "data", "train", "wav", "wavs", "png", "jpg", "jpeg", "dicom")
MISSING = ("", "nan", "NaN", "NA", "None")


@dataclass
class LabelledRows:
    """Training rows, and their truth in columns named like the targets, or in one column of classes."""

    names: list[str]  # the tables it comes from
    train: pd.DataFrame
    truth: pd.DataFrame
    files: list[File] = field(default_factory=list)


def in_tables(sample: pd.DataFrame, targets: list[str], tables: list[DataTable]) -> LabelledRows | None:
    tests = [table for table in tables if table.is_test]
    candidates = [table for table in tables if not table.is_test and len(table.frame) > 1]
    candidates.sort(key=lambda table: ("train" not in table.name.lower(), -len(table.frame)))
    return (
        _same_names(targets, candidates)
        or _class_names(targets, candidates)
        or _melted(targets, candidates, tests)
        or _arrays(targets, candidates, tests)
        or _alike(sample, targets, candidates, tests)
    )


def _same_names(targets: list[str], tables: list[DataTable]) -> LabelledRows | None:
    for table in tables:
        own = {name.casefold(): name for name in table.frame}
        if all(target.casefold() in own for target in targets) and len(own) > len(targets):
            columns = [own[target.casefold()] for target in targets]
            frame, names = _stacked(table, tables)
            truth = frame[columns].set_axis(targets, axis=1)
            train = frame.drop(columns=columns)
            if isinstance(truth.iloc[0, 0], list):
                train, truth = _exploded(train, truth)
            return _described(LabelledRows(names, train, truth))
    return None


def _stacked(table: DataTable, tables: list[DataTable]) -> tuple[pd.DataFrame, list[str]]:
    """The table with the rows of all tables that have the same columns."""
    same = [other for other in tables if list(other.frame) == list(table.frame)]
    return pd.concat([other.frame for other in same], ignore_index=True), [other.name for other in same]


def _described(known: LabelledRows) -> LabelledRows | None:
    """Drop the rows whose truth is missing."""
    keep = ~known.truth.isin(MISSING).any(axis=1)
    if keep.sum() < 2:
        return known if known.truth.shape[1] == 1 and len(known.truth) else None
    parts = known.train[keep].reset_index(drop=True), known.truth[keep].reset_index(drop=True)
    return replace(known, train=parts[0], truth=parts[1])


def _exploded(train: pd.DataFrame, truth: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each position, where the truth is a list."""
    lengths = truth.map(len).min(axis=1).to_numpy()
    rows = np.repeat(np.arange(len(train)), lengths)
    position = np.concatenate([np.arange(length) for length in lengths]) if len(rows) else rows
    cells = {name: [v for cell, n in zip(truth[name], lengths, strict=True) for v in cell[:n]] for name in truth}
    frame = train.iloc[rows].reset_index(drop=True)
    frame[POSITION] = [str(value) for value in position]
    return with_letters(frame), pd.DataFrame(cells).astype(str)


def with_letters(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the letters around the position, for each text column with one letter per position."""
    if POSITION not in frame:
        return frame
    positions = pd.to_numeric(frame[POSITION], errors="coerce").fillna(0).astype(int)
    frame, longest = frame.copy(), positions.max()
    for name in [name for name in frame if name != POSITION]:
        cells = frame[name]
        if not all(isinstance(cell, str) and len(cell) > longest for cell in cells.iloc[:1000]):
            continue
        for step in (-1, 0, 1):
            around = zip(cells, positions + step, strict=True)
            frame[f"{name} at {step:+d}"] = [str(cell)[at] if 0 <= at < len(cell) else "-" for cell, at in around]
    return frame


def _class_names(targets: list[str], tables: list[DataTable]) -> LabelledRows | None:
    """The targets are the values of a column, one for each row or several with commas between them."""
    wanted = set(targets)
    if len(targets) < 2:
        return None
    for table in tables:
        for name in table.frame:
            cells = table.frame[name]
            if not isinstance(cells.iloc[0], str):
                continue
            lists = cells.str.split(",")
            counts = Counter(value for values in lists.iloc[:5000] for value in values)
            if sum(counts[value] for value in wanted) >= 0.9 * counts.total() and len(counts) > 1:
                frame, names = _stacked(table, tables)
                if (lists.str.len() > 1).any():
                    lists = [set(values) for values in frame[name].str.split(",")]
                    flags = {target: ["1" if target in values else "0" for values in lists] for target in targets}
                    return LabelledRows(names, frame.drop(columns=[name]), pd.DataFrame(flags))
                return LabelledRows(names, frame.drop(columns=[name]), frame[[name]].set_axis([CLASS], axis=1))
    return None


def _melted(targets: list[str], tables: list[DataTable], tests: list[DataTable]) -> LabelledRows | None:
    """A test table has a column that says which column of the training table a row asks for."""
    if len(targets) != 1:
        return None
    for test in tests:
        for name in test.frame:
            test_values = [str(value) for value in test.frame[name].astype(str).unique()[:100]]
            for table in tables:
                if len(test_values) > 1 and all(value in table.frame for value in test_values):
                    id_columns = [column for column in table.frame if column not in test_values]
                    long = table.frame.melt(id_columns, test_values, var_name=name, value_name=targets[0])
                    return _described(LabelledRows([table.name], long.drop(columns=targets), long[targets]))
    return None


def is_array(table: DataTable) -> bool:
    return all(":" in name for name in table.frame)


def _arrays(targets: list[str], tables: list[DataTable], tests: list[DataTable]) -> LabelledRows | None:
    """A vector of labels, and matrices for training and testing with the same number of columns."""
    arrays = [table for table in tables if is_array(table)]
    for vector in arrays:
        for matrix in arrays:
            for test in tests if len(targets) == 1 else ():
                widths = matrix.frame.shape[1], test.frame.shape[1]
                if vector.frame.shape[1] == 1 < widths[0] == widths[1] and len(vector.frame) == len(matrix.frame):
                    train = matrix.frame.set_axis(test.frame.columns, axis=1)
                    truth = vector.frame.set_axis(targets, axis=1).astype(str)
                    return LabelledRows([vector.name, matrix.name], train, truth)
    return None


def _alike(
    sample: pd.DataFrame, targets: list[str], tables: list[DataTable], tests: list[DataTable]
) -> LabelledRows | None:
    """The column whose name and values are most like those of the one target."""
    if len(targets) != 1:
        return None
    cells = sample[targets[0]].unique()[:100]
    tokens = {token for cell in cells for token in (cell, *cell.split()[:20])} - {""}
    weight = 1.5 if len(cells) > 1 else 0.5  # a single value that all rows share occurs in many columns
    in_tests = {name for table in tests for name in table.frame}
    expected = {name.casefold() for name in (*in_tests, *sample)}
    best: tuple[float, DataTable, str] | None = None
    for table in tables:
        shared = [name for name in table.frame if name.casefold() in expected]
        for name in table.frame:
            if not shared or name.casefold() in expected or not isinstance(table.frame[name].iloc[0], str):
                continue
            values = set(table.frame[name].iloc[:50_000])
            likeness = SequenceMatcher(None, name.casefold(), targets[0].casefold()).ratio()
            usual = 1.0 * (name.casefold() in USUAL_NAMES) - 0.5 * (len(values) == len(table.frame))
            points = likeness + usual + weight * len(tokens & values) / max(1, len(tokens))
            if points >= 0.7 and len(values) > 1 and (best is None or points > best[0]):
                best = points, table, name
    if best is None:
        return None
    _, table, name = best
    frame, names = _stacked(table, tables)
    return _described(LabelledRows(names, frame.drop(columns=[name]), frame[[name]].set_axis(targets, axis=1)))


def in_files(sample: pd.DataFrame, targets: list[str], files: Files, description: str) -> LabelledRows | None:
    """The class of a training file is its folder, or the word or digit at one end of its name."""
    tests = set(files.test)
    labelled = [file for file in files.train if file not in tests] or files.train
    kinds = Counter(file.kind for file in labelled if file.kind != "other")
    labelled = [file for file in labelled if kinds and file.kind == kinds.most_common(1)[0][0]]
    in_tests = {part for file in files.test for part in file.parts[:-1]}
    for classes in (_folders(labelled, in_tests), _ends_of_names(labelled)):
        numbers = Counter(name for name in classes if name)
        if len(numbers) < 2 or numbers.total() < 0.9 * len(labelled) or numbers.total() < 2 * len(numbers):
            continue
        truth = pd.DataFrame({CLASS: classes})
        if len(targets) == 1:
            is_number = pd.to_numeric(sample[targets[0]], errors="coerce").notna().all()
            if is_number and not all(name.isdigit() for name in numbers):
                if len(numbers) != 2:
                    continue
                yes = _positive(sorted(numbers), description)
                classes = ["1" if name == yes else "0" for name in classes]
            truth = pd.DataFrame({targets[0]: classes})
        elif not set(numbers) <= set(targets):
            continue
        return LabelledRows([], pd.DataFrame({"file": [file.path for file in labelled]}), truth, labelled)
    return None


def _folders(files: Sequence[File], test_folders: set[str]) -> list[str]:
    """A folder that test files also have does not name a class."""
    names = [file.parts[-2] if len(file.parts) > 1 else "" for file in files]
    return [
        "" if name in test_folders or name.casefold() in NO_CLASS_FOLDERS or name[:1] == "_" else name for name in names
    ]


def _ends_of_names(files: Sequence[File]) -> list[str]:
    digits = [re.search(r"[._-]([01])$", file.stem) for file in files]
    if all(digits):
        return [match[1] for match in digits if match]
    words = [re.match(r"([A-Za-z]+)[._ -]?\d+$", file.stem) for file in files]
    return [match[1] if match else "" for match in words]


def _positive(classes: list[str], description: str) -> str:
    """Of two classes, the one whose probability the description asks for; the later one if that is unclear."""
    sentences = [s for s in re.split(r"(?<=[.:;])\s", description) if re.search(r"probab|1 (=|if|for|means)", s)]
    near = [sum(len(re.findall(rf"\b{re.escape(name)}\b", s, re.I)) for s in sentences) for name in classes]
    return classes[0] if near[0] > near[1] else classes[1]


def aligned(
    known: LabelledRows, test: pd.DataFrame, targets: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Training rows, truth and test rows, with column names spelled the same on both sides."""
    own = {name.casefold(): name for name in known.train}
    test = test.drop(columns=[name for name in targets if name in test])
    for name in list(test):
        spelled = own.get(name.casefold(), name)
        if spelled not in test:
            test = test.rename(columns={name: spelled})
    return known.train, known.truth, test
