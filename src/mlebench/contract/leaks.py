"""Does a public file give away the truth of a test row?"""

import hashlib
import io
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import pandas as pd

from mlebench.contract.case import COLUMNS, ONE_ROW_PER, CompetitionCase
from mlebench.contract.file_names import telling_name, truth_of_rows
from mlebench.contract.grading_checks import as_table
from mlebench.contract.public_files import public_files, public_tables
from mlebench.core.paths import CONFIG
from mlebench.kit import public_sample_bytes


def leaks(case: CompetitionCase) -> Iterator[str]:
    """Neither public files nor their names hold the truth of a test row."""
    search = LeakSearch(case)
    for name, table in public_tables(case.competition.public_dir):
        yield from search.table(name, table)
    yield from search.labelled_files()
    yield from search.file_names()
    reason = case.config.nothing_to_compare
    if not search.compared and not reason:
        yield (
            "nothing could be compared: no public table has a column of the truth. Say in `contract` of "
            f"{CONFIG} where the labels for training are (`labels`, `labelled_files`), or why there is nothing to "
            "compare (`nothing_to_compare`)."
        )
    elif search.compared and reason:
        names = ", ".join(sorted(search.compared))
        yield f"{names} can be compared: remove `contract.nothing_to_compare` from {CONFIG}."
    for name in (case.config.labels.keys() | case.config.harmless.keys()) - search.compared:
        yield f"`contract` in {CONFIG} names the table {name}, which is not in the public folder."


class LeakSearch:
    """Compares public tables and files with the test rows; `compared` are those in which the truth could be found."""

    def __init__(self, case: CompetitionCase):
        self._case, self._rules = case, case.config
        self._facts = case.competition.submission
        sample = public_sample_bytes(case.competition)
        self._sample = pd.read_csv(io.BytesIO(sample), dtype=str, keep_default_na=False)
        self._answers = as_table(case.answers())
        self.compared: set[str] = set()

    def table(self, name: str, table: pd.DataFrame) -> Iterator[str]:
        if column := self._rules.labels.get(name):
            self.compared.add(name)
            yield from self._shared_ids(name, table, column)
        elif set(self._case.truth) & set(table.columns) and not self._is_sample(table):
            self.compared.add(name)
            yield from self._with_truth(name, table)

    def _with_truth(self, name: str, table: pd.DataFrame) -> Iterator[str]:
        id, rules = self._facts["id"], self._rules
        if condition := rules.harmless.get(name):
            yield from _harmless(name, table, condition)
        elif rules.renumbered:  # ids prove nothing; only the training table may hold the truth
            if "train" not in name:
                yield f"{name} has a column of the truth, and its name does not say `train`: leave the column out."
        elif rules.row_keys:
            if _rows(table, rules.row_keys) & _rows(self._answers, rules.row_keys):
                yield f"{name} holds the truth of test rows: write the rows of the training set only."
        else:
            if rules.joined_id:
                table = table.assign(**{id: table[rules.joined_id].agg("_".join, axis=1)})
            if id not in table:
                yield (
                    f"{name} has a column of the truth but no column {id!r}, so it is unclear for which rows: leave "
                    f"the column out, or say in `contract` of {CONFIG} what tells its rows apart (`row_keys`)."
                )
                return
            yield from self._shared_ids(name, table, id)

    def _shared_ids(self, name: str, table: pd.DataFrame, column: str) -> Iterator[str]:
        if column not in table:
            yield f"{name} has no column {column!r}, which `contract.labels` in {CONFIG} names."
        elif shared := sorted({*map(_plain, table[column])} & {*map(_plain, self._test_ids(column))}):
            yield f"{name} gives the truth of test rows, for example of {shared[0]!r}: write training rows only."

    def _test_ids(self, column: str) -> set[str]:
        """Ids of test rows as a column of that name has them; for rows that belong together, the id of the group."""
        id = self._facts["id"]
        if column != id and column in self._answers:
            return set(map(str, self._answers[column]))
        ids = set(map(str, self._answers[id])) if id in self._answers else set()
        pattern = self._facts.get("groups", {}).get("pattern")
        return ids | {match[0] for test_id in ids if pattern and (match := re.match(pattern, test_id))}

    def labelled_files(self) -> Iterator[str]:
        if not self._rules.labelled_files:
            return
        files = {
            name: hashlib.md5(content).digest() for name, content in public_files(self._case.competition.public_dir)
        }
        for labelled, unlabelled in self._rules.labelled_files.items():
            train, test = _matching(files, labelled), _matching(files, unlabelled)
            for pattern in (pattern for pattern, names in ((labelled, train), (unlabelled, test)) if not names):
                yield f"no public file matches {pattern!r}, which `contract.labelled_files` in {CONFIG} names."
            self.compared.add(labelled)
            known: set[bytes | str] = {*train.values()}
            if not self._rules.renumbered:
                known.update(PurePosixPath(name).name for name in train)
            for name, content in test.items():
                if content in known or PurePosixPath(name).name in known:
                    yield f"{name} is to be predicted, but is also among the labelled files {labelled}: remove it."
                    break

    def file_names(self) -> Iterator[str]:
        """A file of the test set whose name gives away the truth."""
        truth = truth_of_rows(self._answers, self._facts["id"], self._case.truth)
        names = (name for name, _ in public_files(self._case.competition.public_dir))
        if telling := telling_name(names, truth):
            name, id = telling
            yield (
                f"the name of {name} gives the truth of the test row {id!r}, {truth[id]!r}: let names of files of the "
                "test set say no more than the id."
            )

    def _is_sample(self, table: pd.DataFrame) -> bool:
        """Whether it says no more than the sample submission; other values for the same ids are a leak."""
        known = {self._facts["id"], *self._case.truth} & {*table.columns}
        return known <= {*self._sample.columns} and all(list(table[name]) == list(self._sample[name]) for name in known)


def _plain(id: object) -> str:
    """An id without leading zeros: it may be text in a table and a number in the answers."""
    text = str(id)
    return text.lstrip("0") or "0" if text.isdigit() else text


def _harmless(name: str, table: pd.DataFrame, condition: dict) -> Iterator[str]:
    if (column := condition.get(ONE_ROW_PER)) and table[column].duplicated().any():
        yield f"{name} has several rows for one {column}, which `contract.harmless` in {CONFIG} rules out."
    if (columns := condition.get(COLUMNS)) and list(table.columns) != columns:
        yield f"{name} has columns other than {', '.join(columns)}, which `contract.harmless` in {CONFIG} rules out."


def _rows(table: pd.DataFrame, keys: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(map(str, table[key]) for key in keys), strict=True))


def _matching(files: dict[str, bytes], pattern: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if fnmatchcase(name, pattern)}
