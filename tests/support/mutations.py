"""A corpus of mutated submissions: mistakes of agents and their tools, and attempts to find holes.

`mutations(...)` yields those for one competition, the same ones each time: first each kind once, in an order that
depends on the seed, then several kinds combined.
"""

import csv
import io
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mlebench.kit import public_sample_bytes
from mlebench.registry import Competition

COUNT = int(os.environ.get("MLEBENCH_MUTATIONS", "20"))  # for each competition

ODD_CELLS = (
    "",
    " ",
    "nan",
    "NULL",
    "None",
    "inf",
    "-inf",
    "1e400",
    "-1e308",
    "1e-320",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1" * 400,
    "0x10",
    "1_000",
    "1,5",
    "１２",
    "true",
    "False",
    "[1, 2]",
    '{"a": 1}',
    "=1+1",
    "../../private/test.csv",
    "a\nb",
    'say "hi"',
    "\u202e\u0000\u200b",
    "\ud7ff\U0010ffff",
    "é" * 5000,
    "1 2 3",
    "1 2 3 4 5 6",
    "-1 -1",
    "0 0",
    "1 99999999999999999999",
    "1:2",
    "a:b:c",
    "U+003F 1",
    "14 1 0 0 1",
    "14 nan inf 0 1 1",
    "InChI=1S/",
    "%s%n{0}",
    "2023-01-01",
    "1+2j",
    "$5",
    "50%",
)


@dataclass(frozen=True)
class Table:
    """A CSV file as cells of text, and how it is printed."""

    columns: list[str]
    rows: list[list[str]]
    id: int
    targets: list[int]
    sep: str = ","
    line_end: str = "\n"
    quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL

    def printed(self) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.sep, lineterminator=self.line_end, quoting=self.quoting)
        writer.writerows([self.columns, *self.rows])
        return text.getvalue().encode("utf-8", "surrogatepass")

    def with_cells(self, change: Callable[[int, int, str], str]) -> "Table":
        rows = [[change(row, place, cell) for place, cell in enumerate(cells)] for row, cells in enumerate(self.rows)]
        return replace(self, rows=rows)

    def with_places(self, places: list[int], names: list[str] | None = None) -> "Table":
        """Columns dropped, moved or repeated. If the id or all targets are dropped, another column takes its place."""
        return replace(
            self,
            columns=names or [self.columns[place] for place in places],
            rows=[[cells[place] for place in places] for cells in self.rows],
            id=places.index(self.id) if self.id in places else 0,
            targets=[places.index(place) for place in self.targets if place in places] or [len(places) - 1],
        )


Mutation = Callable[[Table, random.Random], Table]
Damage = Callable[[bytes, random.Random], bytes]


def _some_rows(table: Table, rng: random.Random, share: float = 0.3) -> set[int]:
    count = max(1, int(len(table.rows) * share))
    return set(rng.sample(range(len(table.rows)), min(count, len(table.rows))))


def _target_cells(value: Callable[[str, random.Random], str], share: float = 0.3) -> Mutation:
    """Change some cells of some targets."""

    def mutate(table: Table, rng: random.Random) -> Table:
        rows = _some_rows(table, rng, share)
        places = set(rng.sample(table.targets, rng.randint(1, len(table.targets))))
        return table.with_cells(lambda row, place, cell: value(cell, rng) if row in rows and place in places else cell)

    return mutate


def _id_cells(value: Callable[[str, random.Random], str], share: float = 0.2) -> Mutation:
    def mutate(table: Table, rng: random.Random) -> Table:
        rows = _some_rows(table, rng, share)
        return table.with_cells(
            lambda row, place, cell: value(cell, rng) if row in rows and place == table.id else cell
        )

    return mutate


def _drop_column(table: Table, rng: random.Random) -> Table:
    gone = rng.randrange(len(table.columns))
    return table.with_places([place for place in range(len(table.columns)) if place != gone] or [0])


def _rename_column(table: Table, rng: random.Random) -> Table:
    place = rng.randrange(len(table.columns))
    old = table.columns[place]
    new = rng.choice([old.upper(), old.lower(), f" {old}", f"{old} ", "\u200b" + old, "Unnamed: 0", "", old[:-1], "ß"])
    return replace(table, columns=[*table.columns[:place], new, *table.columns[place + 1 :]])


def _reorder_columns(table: Table, rng: random.Random) -> Table:
    places = list(range(len(table.columns)))
    rng.shuffle(places)
    return table.with_places(places)


def _repeat_column(table: Table, rng: random.Random) -> Table:
    place = rng.randrange(len(table.columns))
    return table.with_places([*range(len(table.columns)), place])


def _same_names(table: Table, rng: random.Random) -> Table:
    return replace(table, columns=[table.columns[rng.randrange(len(table.columns))]] * len(table.columns))


def _add_index(table: Table, rng: random.Random) -> Table:
    """The index that a data frame prints unless told not to."""
    return replace(
        table,
        columns=["", *table.columns],
        rows=[[str(row), *cells] for row, cells in enumerate(table.rows)],
        id=table.id + 1,
        targets=[place + 1 for place in table.targets],
    )


def _drop_rows(table: Table, rng: random.Random) -> Table:
    gone = _some_rows(table, rng)
    return replace(table, rows=[cells for row, cells in enumerate(table.rows) if row not in gone])


def _repeat_rows(table: Table, rng: random.Random) -> Table:
    return replace(table, rows=[*table.rows, *(table.rows[row] for row in sorted(_some_rows(table, rng)))])


def _shuffle_rows(table: Table, rng: random.Random) -> Table:
    return replace(table, rows=rng.sample(table.rows, len(table.rows)))


def _one_id_for_all(table: Table, rng: random.Random) -> Table:
    id = rng.choice(table.rows)[table.id] if table.rows else ""
    return table.with_cells(lambda _, place, cell: id if place == table.id else cell)


def _ids_change_places(table: Table, rng: random.Random) -> Table:
    ids = rng.sample([cells[table.id] for cells in table.rows], len(table.rows))
    return table.with_cells(lambda row, place, cell: ids[row] if place == table.id else cell)


def _ragged(table: Table, rng: random.Random) -> Table:
    rows = _some_rows(table, rng, 0.1)
    longer = rng.random() < 0.5
    return replace(
        table,
        rows=[
            ([*cells, "9"] if longer else cells[:-1]) if row in rows else cells for row, cells in enumerate(table.rows)
        ],
    )


def _one_value(table: Table, rng: random.Random) -> Table:
    """The same in every row: a number, nothing, or an existing class."""
    value = rng.choice(["0", "1", "0.5", "", "True", "nan", rng.choice(table.rows)[table.targets[0]]])
    return table.with_cells(lambda _, place, cell: value if place in table.targets else cell)


def _odd_everywhere(table: Table, rng: random.Random) -> Table:
    value = rng.choice(ODD_CELLS)
    return table.with_cells(lambda _, place, cell: value if place in table.targets else cell)


def _another_separator(table: Table, rng: random.Random) -> Table:
    return replace(table, sep=rng.choice(";\t|"))


def _another_line_end(table: Table, rng: random.Random) -> Table:
    return replace(table, line_end=rng.choice(["\r\n", "\r", "\n\n"]))


def _all_quoted(table: Table, rng: random.Random) -> Table:
    return replace(table, quoting=csv.QUOTE_ALL)


def _quoted_blanks(table: Table, rng: random.Random) -> Table:
    return table.with_cells(lambda row, place, cell: f" {cell} ")


def _no_header(table: Table, rng: random.Random) -> Table:
    return replace(table, columns=table.rows[0], rows=table.rows[1:])


def _nothing_but_header(table: Table, rng: random.Random) -> Table:
    return replace(table, rows=[])


def _transposed(table: Table, rng: random.Random) -> Table:
    lines = [list(line) for line in zip(table.columns, *table.rows, strict=False)]
    return Table(lines[0], lines[1:] or [[]], 0, [len(lines[0]) - 1])


def _other_words(cell: str, rng: random.Random) -> str:
    """Words of a cell left out, repeated, or changed: cells of boxes, runs and texts hold many."""
    words = cell.split(" ")
    place = rng.randrange(len(words))
    return " ".join(
        rng.choice(
            [
                words[:place] + words[place + 1 :],
                words[: place + 1] + words[place:],
                [*words[:place], rng.choice(ODD_CELLS[:40]), *words[place + 1 :]],
                words[::-1],
                [*words, ""],
            ]
        )
    )


def _scaled(cell: str, rng: random.Random) -> str:
    try:
        return repr(float(cell) * rng.choice([-1, 0.5, 2, 1e10, 1e300, 1e-300]))
    except ValueError:
        return cell[: len(cell) // 2]


KINDS: dict[str, Mutation] = {
    "column dropped": _drop_column,
    "column renamed": _rename_column,
    "columns reordered": _reorder_columns,
    "column repeated": _repeat_column,
    "odd cells in targets": _target_cells(lambda _, rng: rng.choice(ODD_CELLS)),
    "one odd cell": _target_cells(lambda _, rng: rng.choice(ODD_CELLS), share=0),
    "numbers scaled": _target_cells(_scaled),
    "words changed": _target_cells(_other_words),
    "empty targets": _target_cells(lambda cell, rng: ""),
    "one value": _one_value,
    "odd everywhere": _odd_everywhere,
    "rows dropped": _drop_rows,
    "rows repeated": _repeat_rows,
    "ids replaced": _id_cells(lambda cell, rng: rng.choice([*ODD_CELLS, cell + "x", cell.upper(), f"0{cell}"])),
    "one id for all": _one_id_for_all,
    "ids change places": _ids_change_places,
    "index column": _add_index,
    "ragged": _ragged,
    "other separator": _another_separator,
    "no header": _no_header,
    "rows shuffled": _shuffle_rows,
    "line ends": _another_line_end,
    "all quoted": _all_quoted,
    "blanks around cells": _quoted_blanks,
    "names alike": _same_names,
    "transposed": _transposed,
    "header only": _nothing_but_header,
    "targets change places": _target_cells(lambda cell, rng: cell[::-1]),
}


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _bits_flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(1 + len(changed) // 200):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


DAMAGE: dict[str, Damage] = {
    "BOM": lambda content, rng: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda content, rng: content.decode("utf-8", "replace").encode("utf-16"),
    "cut": _cut,
    "bits flipped": _bits_flipped,
    "NUL bytes": lambda content, rng: content.replace(b",", b"\0,", 3),
    "open quote": lambda content, rng: content.replace(b"\n", b'\n"', 1),
    "binary": lambda content, rng: rng.randbytes(300),
    "empty": lambda content, rng: rng.choice([b"", b"\n", b" ", b"\r\n\r\n", b",,,\n"]),
    "an archive": lambda content, rng: b"PK\x03\x04" + content,
}


def mutations(competition: Competition, seed: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of mutated submissions to a prepared competition; the same for the same seed."""
    facts = competition.submission
    sample, gold = public_sample_bytes(competition), competition.gold_submission.read_bytes()
    table = _table(sample, gold, facts["id"], facts["targets"], facts.get("truth"))
    names = random.Random(seed).sample([*KINDS, *DAMAGE], len(KINDS) + len(DAMAGE))
    for number in range(COUNT):
        rng = random.Random(f"{seed}/{number}")
        if number >= len(names):
            yield _several(table, rng, number)
        elif (name := names[number]) in KINDS:
            yield name, KINDS[name](table, rng).printed()
        else:
            yield name, DAMAGE[name](table.printed(), rng)


def _several(table: Table, rng: random.Random, number: int) -> tuple[str, bytes]:
    chosen = [rng.choice(list(KINDS)) for _ in range(rng.randint(1, 3))]
    for name in chosen:
        if not table.rows or not table.columns or any(len(cells) != len(table.columns) for cells in table.rows):
            break  # nothing is left to change, or rows do not match the header
        table = KINDS[name](table, rng)
    content = table.printed()
    if rng.random() < 0.2 and content:
        damage = rng.choice(list(DAMAGE))
        chosen, content = [*chosen, damage], DAMAGE[damage](content, rng)
    return f"{number}: {', '.join(chosen)}", content


def _table(sample: bytes, gold: bytes, id: str, targets: list[str], truth: list[str] | None) -> Table:
    """Gold in the columns of the sample; if gold names its targets differently, they are the first of `truth`."""
    header = next(csv.reader(io.StringIO(sample.decode("utf-8"), newline="")))
    names, *rows = csv.reader(io.StringIO(gold.decode("utf-8"), newline=""))
    source = dict(zip(targets, truth or [], strict=False)) if not set(targets) <= set(names) else {}
    places = [names.index(source.get(name, name)) if source.get(name, name) in names else 0 for name in header]
    return Table(
        columns=header,
        rows=[[cells[place] for place in places] for cells in rows],
        id=header.index(id),
        targets=[header.index(name) for name in targets],
    )
