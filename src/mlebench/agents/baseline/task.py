"""Works out the task: which columns of the sample to fill, what is known about them, and which rows belong together."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import labels
import numpy as np
import pandas as pd
from files import File, Files, of_best_kind
from metric import Metric
from tables import DataTable

ENOUGH = 0.95  # the share of ids that must be found
LOOKED_AT = 2000  # values compared to find out what a column is


@dataclass
class PredictionTask:
    sample: pd.DataFrame
    id: str
    targets: list[str]
    metric: Metric
    train: pd.DataFrame  # what is known about the training rows, apart from the truth
    truth: pd.DataFrame  # their targets, as texts; a column `class` where the targets are the names of classes
    test: pd.DataFrame  # the same for the test rows
    group: np.ndarray  # for each test row, the number of its id
    rows: np.ndarray  # for each row of the sample, the number of its id
    train_files: list[list[File]] = field(default_factory=list)
    test_files: list[list[File]] = field(default_factory=list)

    @property
    def is_by_class(self) -> bool:
        return list(self.truth) == [labels.CLASS]

    @property
    def inputs(self) -> list[str]:
        """Columns that both sides have, except ids, which only identify rows or groups."""
        both = [name for name in self.test if name in self.train and name.casefold() != self.id.casefold()]
        return [name for name in both if name not in self.groups]

    @cached_property
    def groups(self) -> list[str]:
        """Columns that group rows and share no values between training and test: patients, trips, recordings."""
        names = []
        for name in self.train:
            if re.search(r"(id|uid|name|group)$", name, re.I) and isinstance(self.train[name].iloc[0], str):
                values = self.train[name]
                repeats = 1 < values.nunique() < 0.9 * len(values)
                is_new = name not in self.test or self.test[name].isin(values).mean() < 0.05
                names += [name] if repeats and is_new else []
        return [name for name in names if name in self.test or name.casefold() == self.id.casefold()]

    @cached_property
    def belongs_to(self) -> np.ndarray:
        """The number of each training row's group: a group is used either for training or for judging, never both."""
        if not self.groups:
            return np.arange(len(self.train))
        coarsest = min(self.groups, key=lambda name: self.train[name].nunique())
        return pd.factorize(self.train[coarsest])[0]

    def describe(self) -> str:
        files = sum(map(bool, self.train_files))
        return (
            f"{len(self.sample)} rows to fill, id {self.id!r}, targets {self.targets[:5]!r} ({len(self.targets)}), "
            f"{len(self.train)} training rows with {len(self.inputs)} columns, {files} of them with "
            f"{next((f[0].kind for f in self.train_files if f), 'no')} files; metric: {self.metric.name}"
        )


class UnclearError(Exception):
    """The task is unclear, or not one that this agent's models can answer."""


def understand(
    sample: pd.DataFrame, tables: list[DataTable], files: Files, description: str, metric: Metric
) -> PredictionTask:
    if metric.wants == "other":
        raise UnclearError(f"nothing to predict under {metric.name}")
    id, targets = ids_and_targets(sample, tables)
    if not targets:
        raise UnclearError("the sample has no column to fill")
    rows, ids = pd.factorize(sample[id])
    known = labels.in_tables(sample, targets, tables) or labels.in_files(sample, targets, files, description)
    if known is None:
        raise UnclearError(f"no table and no folder has values for {targets[:5]}")
    test, group = test_rows(sample, id, targets, pd.Index(ids), [t for t in tables if t.name not in known.names])
    train, truth, test = labels.aligned(known, test, targets)
    task = PredictionTask(sample, id, targets, metric, train, truth, test, group, rows)
    if known.files:
        test_files = files.of(list(pd.Index(ids)[group]), is_test=True)
        task.train_files, task.test_files = of_best_kind([[file] for file in known.files], test_files)
    else:
        _find_files(task, files)
    if not task.inputs and not any(task.train_files):
        _use_ids(task)
    if not task.inputs and not any(task.train_files) and not any("train" in name.lower() for name in known.names):
        raise UnclearError("nothing is known about the rows to predict, and no table is for training")
    return task


def ids_and_targets(sample: pd.DataFrame, tables: list[DataTable]) -> tuple[str, list[str]]:
    """Columns whose values a test table has under the same name are given; the others must be filled."""
    given_columns = [
        name for name in sample if not name or name.startswith("Unnamed") or _is_given(sample[name], tables)
    ]
    ids = [name for name in given_columns if name]
    if not ids:
        unique = [name for name in sample if sample[name].is_unique and name not in given_columns]
        ids = [unique[0] if unique else next(name for name in sample if name not in given_columns)]
    id = max(ids, key=lambda name: sample[name].nunique())
    return id, [name for name in sample if name not in (*given_columns, id)]


def _is_given(column: pd.Series, tables: list[DataTable]) -> bool:
    sample = column.iloc[:LOOKED_AT]
    if sample.nunique() == 1 and len(column) > 1:
        return False
    for table in tables:
        if table.is_test:
            for name in _named(table.frame, str(column.name)):
                if sample.isin(table.frame[name].astype(str)).mean() >= ENOUGH:
                    return True
    return False


def _named(frame: pd.DataFrame, name: str) -> list[str]:
    return [other for other in frame if other.casefold() == name.casefold()]


def test_rows(
    sample: pd.DataFrame, id: str, targets: list[str], ids: pd.Index, tables: list[DataTable]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows to predict, and for each the number of its id."""
    for table in sorted(tables, key=lambda table: not table.is_test):
        for keys, frame in _keyed(table.frame, id, ids):
            number = ids.get_indexer(pd.Index(keys))
            if len(np.unique(number[number >= 0])) >= ENOUGH * len(ids):
                frame = frame[number >= 0].reset_index(drop=True)
                return frame.assign(**{id: ids[number[number >= 0]]}), number[number >= 0]
    for table in tables:
        if table.is_test and len(table.frame) == len(sample) == len(ids) and labels.is_array(table):
            return table.frame, np.arange(len(ids))
    first = ~sample[id].duplicated()
    return sample.loc[first, [name for name in sample if name not in targets]].reset_index(drop=True), np.arange(
        len(ids)
    )


def _keyed(frame: pd.DataFrame, id: str, ids: pd.Index) -> Iterator[tuple[pd.Series, pd.DataFrame]]:
    """Ways to read ids out of a table: a column, two columns joined by an underscore, a column and a position."""
    texts = [name for name in frame if isinstance(frame[name].iloc[0], str)]
    for name in sorted(texts, key=lambda name: name.casefold() != id.casefold()):
        if ids[:100].isin(frame[name]).mean() > 0.5:
            yield frame[name], frame
    parts = pd.Series(ids[: LOOKED_AT * 10].astype(str)).str.rpartition("_")
    bases, ends = parts[0], parts[2]
    if (bases == "").any():
        return
    for name in texts:
        if bases.isin(frame[name]).mean() < ENOUGH:
            continue
        for other in texts:
            if other != name and ends.isin(frame[other]).mean() >= ENOUGH:
                yield frame[name] + "_" + frame[other], frame
        yield _with_positions(frame, name, id, ids)


def _with_positions(frame: pd.DataFrame, base: str, id: str, ids: pd.Index) -> tuple[pd.Series, pd.DataFrame]:
    """A row for each id, whose last part is a position, or the value of the column that the id's name ends with."""
    parts = pd.Series(ids.astype(str)).str.rpartition("_")
    end = id.rpartition("_")[2].casefold()
    column = next((name for name in frame if end and name.casefold().startswith(end)), labels.POSITION)
    first = frame.drop_duplicates(base).drop(columns=[column], errors="ignore").set_index(base)
    rows = first.reindex(parts[0]).reset_index(names=base).fillna("")
    rows[column] = parts[2].to_numpy()
    return pd.Series(ids), labels.with_letters(rows)


def _find_files(task: PredictionTask, files: Files) -> None:
    """Match files by the columns whose values name files most often."""
    columns = []
    for frame, is_test in ((task.train, False), (task.test, True)):
        shares = {name: files.share(map(str, frame[name]), is_test) for name in frame if _may_name_files(frame[name])}
        best = max(shares, key=lambda name: (round(shares[name], 1), frame[name].nunique()), default=None)
        if best is None or shares[best] < 0.5:
            return
        columns.append(files.of([*map(str, frame[best])], is_test))
    task.train_files, task.test_files = of_best_kind(columns[0], columns[1])


def _may_name_files(column: pd.Series) -> bool:
    sample = column.iloc[:LOOKED_AT]
    return (
        all(isinstance(value, str) and len(value) < 200 for value in sample)
        and sample.nunique() > 0.02 * len(sample) + 1
    )


def _use_ids(task: PredictionTask) -> None:
    """If nothing else is known, use the parts of the ids, provided that all ids have the same parts."""
    names = [next((c for c in side if c.casefold() == task.id.casefold()), None) for side in (task.train, task.test)]
    if None in names:
        return
    parts = [side[name].str.split("_", expand=True) for side, name in zip((task.train, task.test), names, strict=True)]
    if parts[0].shape[1] == parts[1].shape[1] > 2:
        for number in range(parts[0].shape[1]):
            task.train[f"part {number}"], task.test[f"part {number}"] = parts[0][number], parts[1][number]
