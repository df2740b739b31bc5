from collections.abc import Sequence

import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids, json_bytes

VERBS = ("load", "clean", "plot", "fit", "score", "tune", "save", "größe_ändern")
SUBJECTS = ("sales", "images", "weather", "Ünal's notes", "tweets 😀", '"raw" data')


def twin(raw: TwinFolder) -> None:
    """Signal: the text `Step 3` comes before the code cell that makes `step_3`."""
    count = raw.count(120, least=60)
    raw.set_scaled(20_000, count // 6)
    ids = hex_ids(raw.rng, count, 14)
    raw.write_csv("train_orders.csv", {"id": ids, "cell_order": _notebooks(raw, "train", ids)})
    raw.write_csv("train_ancestors.csv", _ancestors(raw.rng, ids))

    later = hex_ids(raw.rng, raw.count(6), 14)
    raw.write_csv("sample_submission.csv", {"id": later, "cell_order": _notebooks(raw, "test", later)})


def _ancestors(rng: np.random.RandomState, ids: list[str]) -> dict[str, list]:
    """Families of a few notebooks or one; a parent is a member of the family or a notebook that was not kept."""
    families = rng.randint(0, max(2, int(0.7 * len(ids))), len(ids)).tolist()
    names = hex_ids(rng, max(families) + 1, 8)
    parents = hex_ids(rng, len(ids), 14)
    seen: dict[int, str] = {}
    columns: dict[str, list] = {"id": [], "ancestor_id": [], "parent_id": []}
    kinds = rng.choice(["none", "family", "gone"], len(ids), p=[0.6, 0.3, 0.1])
    for place in rng.permutation(len(ids)):
        family, kind = families[place], kinds[place]
        parent = seen.get(family) if kind == "family" else parents[place] if kind == "gone" else None
        seen[family] = ids[place]
        for name, value in zip(columns, (ids[place], names[family], parent), strict=True):
            columns[name].append(value)
    return columns


def _notebooks(raw: TwinFolder, folder: str, ids: Sequence[str]) -> list[str]:
    """A file for each notebook; the orders of their cells."""
    rng = raw.rng
    steps, extra = rng.randint(1, 8, len(ids)), rng.randint(1, 3, len(ids))
    ends = np.cumsum(2 * steps + extra)
    cells = hex_ids(rng, int(ends[-1]), 8)
    orders = []
    for id, end, step_count, extra_count in zip(ids, ends, steps, extra, strict=True):
        here = cells[end - 2 * step_count - extra_count : end]
        code, text = here[:step_count], here[step_count:]
        orders.append(" ".join(_order(rng, code, text)))
        sources = dict(zip(code, _code(rng, step_count), strict=True))
        sources |= dict(zip(text, _text(rng, step_count, extra_count), strict=True))
        given = [*code, *rng.permutation(text).tolist()]
        kinds = {cell: "code" if cell in code else "markdown" for cell in given}
        raw.write(
            f"{folder}/{id}.json", json_bytes({"cell_type": kinds, "source": {cell: sources[cell] for cell in given}})
        )
    return orders


def _order(rng: np.random.RandomState, code: list[str], text: list[str]) -> list[str]:
    """A title, then each step's text before its code, sometimes after it; what is left over comes at the end."""
    title, steps, rest = text[0], text[1 : 1 + len(code)], text[1 + len(code) :]
    late = rng.rand(len(code)) < 0.1
    pairs = [[c, t] if after else [t, c] for c, t, after in zip(code, steps, late, strict=True)]
    return [title, *(cell for pair in pairs for cell in pair), *rest]


def _code(rng: np.random.RandomState, count: int) -> list[str]:
    verbs = rng.choice(VERBS, count)
    return [f"# {verb}\nstep_{place} = {verb}(step_{place - 1})" for place, verb in enumerate(verbs, start=1)]


def _text(rng: np.random.RandomState, steps: int, extra: int) -> list[str]:
    """A title, a text for each step, and some more."""
    subject = rng.choice(SUBJECTS)
    title, more = f"# All about {subject}", [f"Thanks for reading, {subject}!"] * (extra - 1)
    return [title, *(f"## Step {place}\nWhat to do with {subject}\\n" for place in range(1, steps + 1)), *more]
