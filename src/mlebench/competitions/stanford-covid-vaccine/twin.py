import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mlebench.kit.twins import TwinFolder, json_lines_bytes, rounded

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")
ERRORS = ("reactivity_error", "deg_error_Mg_pH10", "deg_error_pH10", "deg_error_Mg_50C", "deg_error_50C")
SHORT, LONG = (107, 68), (130, 91)  # positions of a molecule, and how many of them are measured
HEAD, TAIL = "GGAAA", "AAAGAAACAACAACAACAAC"
BASES = np.array(list("ACGU"))  # the partner of base i is base 3 - i
FRAILTY = np.array([0.9, 0.4, 0.8, 0.45])
ALIKE = 8  # molecules that fold in the same way
MUTATED = 0.04  # bases of a molecule that are drawn anew to make a related one


class Fold(NamedTuple):
    """A shape that molecules take: its notation, the kind of loop at each position, and which bases are paired."""

    structure: str
    loops: str
    opening: list[int]
    closing: list[int]


def twin(raw: TwinFolder) -> None:
    """Signal: paired bases degrade little; of the others, A and G degrade most."""
    count, later = raw.count(100, least=20), raw.count(20, least=4)
    ids = _ids(raw.rng, count + later)
    mine = np.sort(raw.rng.permutation(count + later)[:count])
    train_ids, later_ids = [ids[row] for row in mine], np.delete(ids, mine).tolist()
    lengths = [LONG if chance < 0.8 else SHORT for chance in raw.rng.rand(later)]

    raw.write("train.json", b"".join(map(json_lines_bytes, _measured(raw.rng, train_ids))))
    molecules = [
        {"index": index, "id": id, **_molecules(raw.rng, 1, length)[0][0], "seq_length": length, "seq_scored": scored}
        for index, (id, (length, scored)) in enumerate(zip(later_ids, lengths, strict=True))
    ]
    raw.write("test.json", json_lines_bytes(molecules))
    places = [f"{id}_{place}" for id, (length, _) in zip(later_ids, lengths, strict=True) for place in range(length)]
    raw.write_csv("sample_submission.csv", {"id_seqpos": places, **dict.fromkeys(TARGETS, ["0.0"] * len(places))})
    for id in train_ids[:2]:  # the original has one of these for every molecule; nothing uses them
        chances = io.BytesIO()
        np.save(chances, rounded(raw.rng.rand(SHORT[0], SHORT[0])).astype(np.float32))
        raw.write(f"bpps/{id}.npy", chances.getvalue())


def _ids(rng: np.random.RandomState, count: int) -> list[str]:
    step = 16**9 // count
    return [f"id_{number:09x}" for number in (np.arange(count) * step + rng.randint(0, step, count)).tolist()]


def _measured(rng: np.random.RandomState, ids: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Molecules with their measurements, some at a time. Two out of three are measured well."""
    length, scored = SHORT
    for start in range(0, len(ids), ALIKE):
        some = ids[start : start + ALIKE]
        molecules, rates = _molecules(rng, len(some), length)
        good = rng.permutation(len(some)) % 3 > 0
        quality = rounded(np.where(good, 1 + 8 * rng.rand(len(some)), 1.5 * rng.rand(len(some)) - 0.5), 3).tolist()
        noise = np.where(good, 0.1, 1.5)[:, None]
        columns = {}
        for name in ERRORS:
            columns[name] = rounded(
                noise * (1 + 9999 * (rng.rand(len(some), 1) < 0.02)) * rng.rand(len(some), scored), 4
            )
        for place, name in enumerate(TARGETS):
            values = (1 - 0.1 * place) * rates[:, :scored] + noise * (rng.rand(len(some), scored) - 0.5)
            columns[name] = rounded(values, 4)
        columns[TARGETS[0]][0, :2] = 0.00001, -0.0  # one is printed as 1e-05
        lists = {name: values.tolist() for name, values in columns.items()}
        yield [
            {
                "index": start + row,
                "id": id,
                **molecules[row],
                "signal_to_noise": quality[row],
                "SN_filter": float(good[row]),  # 1.0 in the file, a whole number to pandas
                "seq_length": length,
                "seq_scored": scored,
                **{name: values[row] for name, values in lists.items()},
            }
            for row, id in enumerate(some)
        ]


def _molecules(rng: np.random.RandomState, count: int, length: int) -> tuple[list[dict[str, str]], np.ndarray]:
    """Sequences that fit a fold, and how fast each base degrades; every second one is nearly that before it."""
    fold = _fold(rng, length)
    bases = rng.randint(0, 4, (count, length))
    second, first = bases[1::2], bases[: count // 2 * 2 : 2]
    second[:] = np.where(rng.rand(*second.shape) < MUTATED, second, first)
    for start, ends in ((0, HEAD), (length - len(TAIL), TAIL)):
        bases[:, start : start + len(ends)] = ["ACGU".index(base) for base in ends]
    bases[:, fold.closing] = 3 - bases[:, fold.opening]
    rates = FRAILTY[bases]
    rates[:, [*fold.opening, *fold.closing]] *= 0.25
    sequences = map("".join, BASES[bases].tolist())
    shape = {"structure": fold.structure, "predicted_loop_type": fold.loops}
    return [{"sequence": sequence, **shape} for sequence in sequences], rates


def _fold(rng: np.random.RandomState, length: int) -> Fold:
    """Hairpins one after the other, between two loose ends."""
    fold, loops = "." * len(HEAD), "E" * len(HEAD)
    opening, closing = [], []
    while True:
        stem, loop, gap = rng.randint(3, 7), rng.randint(4, 8), rng.randint(1, 4)
        if len(fold) + 2 * stem + loop + gap > length - len(TAIL):
            break
        opening += range(len(fold), len(fold) + stem)
        closing += range(len(fold) + 2 * stem + loop - 1, len(fold) + stem + loop - 1, -1)
        fold += "(" * stem + "." * loop + ")" * stem + "." * gap
        loops += "S" * stem + "H" * loop + "S" * stem + "X" * gap
    loose = length - len(fold)
    return Fold(fold + "." * loose, loops + "E" * loose, opening, closing)
