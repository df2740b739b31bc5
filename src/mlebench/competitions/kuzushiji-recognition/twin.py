import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, zip_bytes

CHARACTERS = "のにしてはをとがもるなりたれか一人々〻事候𠀋?"  # the frequent ones first; one is beyond 16 bits
BOOKS = ("100241706_{:05d}_2", "200014740-{:05d}_1", "umgy{:03d}-008", "hnsd{:03d}-011", "brsk{:03d}-003")
OPENING = 3  # lines
CELL, ROWS, COLUMNS, MARGIN = 12, 8, 6, 6  # the largest size of a character and the edge of a page, in pixels
PAPER, INK = np.array([222, 205, 170]), np.array([60, 50, 45])


def twin(raw: TwinFolder) -> None:
    """Signal: each character is always the same blot of ink, with its own size, on light paper.

    Each book begins all its pages with the same lines.
    """
    sizes = 5 + raw.rng.randint(0, CELL - 6, (len(CHARACTERS), 2))  # width and height
    inside = np.arange(CELL) < sizes[:, :, None]
    blots = (raw.rng.rand(len(CHARACTERS), CELL, CELL) < 0.6) & inside[:, 1, :, None] & inside[:, 0, None, :]
    # With an empty cell at the end, as number -1.
    drawings = np.concatenate([blots, np.zeros((1, CELL, CELL), dtype=bool)])

    ids, labels = _pages(raw, "train", raw.count(120, least=40), drawings, sizes)
    raw.write_csv("train.csv", {"image_id": ids, "labels": labels})
    later, _ = _pages(raw, "test", raw.count(30), drawings, sizes)
    raw.write_csv("sample_submission.csv", {"image_id": later, "labels": ["U+003F 1 1 U+FF2F 2 2"] * len(later)})
    raw.write_csv("unicode_translation.csv", {"Unicode": list(map(_code, CHARACTERS)), "char": list(CHARACTERS)})


def _pages(
    raw: TwinFolder, name: str, count: int, drawings: np.ndarray, sizes: np.ndarray
) -> tuple[list[str], list[str]]:
    """Draw pages into an archive; returns their ids and what is on them."""
    first = 0 if name == "train" else 500_000
    ids = sorted(BOOKS[page % len(BOOKS)].format(first + page) for page in range(count))
    frequency = 1 / np.arange(1, len(CHARACTERS) + 1)
    openings = raw.rng.randint(0, len(CHARACTERS), (len(BOOKS), OPENING, COLUMNS))
    members, labels = {}, []
    for id in ids:
        written = raw.rng.choice(len(CHARACTERS), (ROWS, COLUMNS), p=frequency / frequency.sum())
        written[raw.rng.rand(ROWS, COLUMNS) < raw.rng.uniform(0.2, 0.9)] = -1
        written[raw.rng.randint(ROWS), raw.rng.randint(COLUMNS)] = 0  # no page is blank
        written[:OPENING] = openings[[id[:4] == book[:4] for book in BOOKS].index(True)]
        members[f"{id}.jpg"] = _page(raw.rng, drawings[written])
        labels.append(_labels(raw.rng, written, sizes))
    raw.write(f"{name}_images.zip", zip_bytes(members))
    return ids, labels


def _page(rng: np.random.RandomState, cells: np.ndarray) -> bytes:
    ink = np.pad(cells.transpose(0, 2, 1, 3).reshape(ROWS * CELL, COLUMNS * CELL), MARGIN)
    pixels = np.where(ink[:, :, None], INK, PAPER) + rng.randint(-12, 13, (*ink.shape, 1))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")


def _labels(rng: np.random.RandomState, written: np.ndarray, sizes: np.ndarray) -> str:
    """What is on a page, in no order: for each character its code, left, top, width and height."""
    row, column = rng.permutation(np.argwhere(written >= 0)).T
    character = written[row, column]
    corner = MARGIN + CELL * np.column_stack([column, row])
    boxes = np.column_stack([corner, sizes[character]]).tolist()
    codes = [_code(CHARACTERS[number]) for number in character]
    return " ".join(
        f"{code} {x} {y} {width} {height}" for code, (x, y, width, height) in zip(codes, boxes, strict=True)
    )


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"
