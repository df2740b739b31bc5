import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

SIDE = 16  # the original's pictures have 300 pixels on their shorter side
SQUARE = 4
PLACES = (SIDE // SQUARE) ** 2
MOST_ATTRIBUTES = 3474  # as in the original
GROUPS = ("country", "culture", "dimension", "medium", "tags")
WORDS = (
    "egypt",
    "Côte d'Ivoire",
    "gold, silver",
    'so-called "Bactrian"',
    "whole",
    "silk",
    "men",
    "birds",
    "NA",
    "none",
)


def twin(raw: TwinFolder) -> None:
    """Signal: the country of a work gives its picture a colour; each subject (`tags`) is a white square somewhere."""
    names = _attribute_names(min(raw.count(50, least=40), MOST_ATTRIBUTES))
    raw.write_csv("labels.csv", {"attribute_id": range(len(names)), "attribute_name": names})
    colours = raw.rng.randint(20, 200, (len(names), 3))

    train = _ids(raw.rng, raw.count(200, least=60))
    attributes = _attributes(raw.rng, len(train), len(names))
    raw.write_csv("train.csv", {"id": train, "attribute_ids": [" ".join(map(str, some)) for some in attributes]})
    _write_pictures(raw, "train", train, attributes, colours)

    later = _ids(raw.rng, raw.count(40))
    raw.write_csv("sample_submission.csv", {"id": later, "attribute_ids": ["0 1 2"] * len(later)})
    _write_pictures(raw, "test", later, _attributes(raw.rng, len(later), len(names)), colours)


def _attribute_names(count: int) -> list[str]:
    """The groups take turns, so that a number shows which one it belongs to."""
    return [f"{GROUPS[number % len(GROUPS)]}::{WORDS[number % len(WORDS)]} {number}" for number in range(count)]


def _ids(rng: np.random.RandomState, count: int) -> list[str]:
    """Sixteen hexadecimal digits; a few look like a number."""
    ids = random_hex(rng, count, digits=16)
    ids[:2] = [f"{rng.randint(10**9):016d}", f"{rng.randint(10**9):012d}e{rng.randint(100):03d}"]
    return sorted(ids)


def _attributes(rng: np.random.RandomState, count: int, attributes: int) -> list[list[int]]:
    """For each work a country, at most one of each middle group, and subjects; the higher a number, the rarer."""
    per_group = attributes // len(GROUPS)
    share = 1 / (1 + np.arange(per_group))
    chosen = rng.choice(per_group, (count, len(GROUPS) + 2), p=share / share.sum())
    group = np.array([0, 1, 2, 3, 4, 4, 4])
    present = rng.rand(*chosen.shape) < np.array([1, 0.4, 0.2, 0.5, 0.9, 0.5, 0.2])
    numbers = chosen * len(GROUPS) + group
    return [list(dict.fromkeys(row[there][::-1].tolist())) for row, there in zip(numbers, present, strict=True)]


def _write_pictures(
    raw: TwinFolder, folder: str, ids: list[str], attributes: list[list[int]], colours: np.ndarray
) -> None:
    for id, some in zip(ids, attributes, strict=True):
        (country,) = (number for number in some if GROUPS[number % len(GROUPS)] == "country")
        pixels = colours[country] + raw.rng.randint(0, 20, (SIDE, SIDE, 3))
        for subject in (number for number in some if GROUPS[number % len(GROUPS)] == "tags"):
            top, left = (SQUARE * place for place in divmod(subject // len(GROUPS) % PLACES, SIDE // SQUARE))
            pixels[top : top + SQUARE, left : left + SQUARE] = 255
        raw.write(f"{folder}/{id}.png", image_bytes(pixels, "PNG"))
