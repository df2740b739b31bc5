"""Submissions of every kind, right and wrong, made from a competition's sample and gold submissions.

Cells are handled as text, so the files are the same under every version of every library. The golden figures say what
score or verdict each of them gets from the reference.
"""

import csv
import io
from collections.abc import Callable, Sequence

import numpy as np

Rows = list[dict[str, str]]


def submissions(
    sample: bytes, gold: bytes, id: str, targets: list[str], truth: list[str] | None = None, key: Sequence[str] = ()
) -> dict[str, bytes]:
    """Name → CSV file. Where gold's columns are not named like the targets, they are the first of `truth`.

    Rows that share an id differ in another column of the key.
    """
    columns, sample_rows = _parse(sample)
    rows = _parse(gold)[1]
    if not set(targets) <= set(rows[0]):
        rows = [row | {target: row[name] for target, name in zip(targets, truth or [], strict=False)} for row in rows]
    rng = np.random.RandomState(7)
    noisy = _with_targets_moved(rows, targets, rng.rand(len(rows)) < 0.3, rng)

    files = {
        "sample": sample,
        "gold": gold,
        "gold, shuffled": _csv(columns, [rows[number] for number in rng.permutation(len(rows))]),
        "noisy": _csv(columns, noisy),
        "noisy, shuffled": _csv(columns, [noisy[number] for number in rng.permutation(len(rows))]),
        "random": _csv(columns, _with_targets_moved(rows, targets, np.ones(len(rows), dtype=bool), rng)),
        "extra column": _csv([*columns, "extra"], [row | {"extra": "1"} for row in noisy]),
        "columns reversed": _csv(columns[::-1], noisy),
        **_faulty(columns, rows, noisy, id, targets, key or [id]),
    }
    if blended := _blend(rows, sample_rows, targets, rng):
        files["blend"] = _csv(columns, blended)
        files["blend, shuffled"] = _csv(columns, [blended[number] for number in rng.permutation(len(rows))])
    return files


def _faulty(
    columns: list[str], rows: Rows, noisy: Rows, id: str, targets: list[str], key: Sequence[str]
) -> dict[str, bytes]:
    """Submissions with one fault each; the grader decides whether it is one."""

    def edited(edit: Callable[[Rows], object]) -> bytes:
        copy = [dict(row) for row in noisy]
        edit(copy)
        return _csv(columns, copy)

    def first_target(value: str) -> bytes:
        return edited(lambda copy: copy[0].update({targets[0]: value}))

    without_target = [name for name in columns if name != targets[0]]
    without_id = [name for name in columns if name != id]
    foreign = "987654321" if all(row[id].isdigit() for row in rows) else "foreign-id"
    return {
        "no target column": _csv(without_target, noisy),
        "no id column": _csv(without_id, noisy),
        "row missing": edited(lambda copy: copy.pop()),
        "row too many": edited(lambda copy: copy.append(copy[-1] | {id: foreign})),
        "row twice": edited(lambda copy: copy.append(dict(copy[0]))),
        "id twice": edited(lambda copy: copy[min(1, len(copy) - 1)].update({name: copy[0][name] for name in key})),
        "foreign id": edited(lambda copy: copy[0].update({id: foreign})),
        "empty id": edited(lambda copy: copy[0].update({id: ""})),
        "empty target": first_target(""),
        "text in target": first_target("abc"),
        "fraction in target": first_target("0.25"),
        "large target": first_target("1000000"),
        "negative target": first_target("-1"),
        "infinite target": first_target("inf"),
        "all targets text": edited(lambda copy: [row.update(dict.fromkeys(targets, "abc")) for row in copy]),
        "header only": _csv(columns, []),
        "empty file": b"",
        "blank lines": b"\n\n\n",
        "not utf-8": b"\xff\xfe" + _csv(columns, noisy),
        "ragged": _csv(columns, noisy) + b"1,2,3,4,5,6,7,8,9\n",
    }


def _with_targets_moved(rows: Rows, targets: list[str], chosen: np.ndarray, rng: np.random.RandomState) -> Rows:
    """Shuffle targets among the chosen rows, so that only existing values occur."""
    chosen_rows = np.flatnonzero(chosen)
    moved = [dict(row) for row in rows]
    for number, source in zip(chosen_rows, rng.permutation(chosen_rows), strict=True):
        moved[number].update({name: rows[source][name] for name in targets})
    return moved


def _blend(rows: Rows, sample_rows: Rows, targets: list[str], rng: np.random.RandomState) -> Rows:
    """A mix of gold and sample, where both are numbers; sums of probabilities stay the same."""
    try:
        truth = np.array([[float(row[name]) for name in targets] for row in rows])
        guess = np.array([[float(row[name]) for name in targets] for row in sample_rows])
    except ValueError:
        return []
    weight = rng.rand(len(rows), 1).round(3)
    values = (weight * truth + (1 - weight) * guess).round(9)
    return [
        row | dict(zip(targets, map(repr, line), strict=True)) for row, line in zip(rows, values.tolist(), strict=True)
    ]


def _parse(content: bytes) -> tuple[list[str], Rows]:
    reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
    rows = list(reader)
    return list(reader.fieldnames or []), rows


def _csv(columns: list[str], rows: Rows) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
