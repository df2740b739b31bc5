"""What twins of image catalogues are made of: rare and frequent categories, and pictures that show which is which."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlebench.kit.twins.folder import TwinFolder
from mlebench.kit.twins.formats import records_of
from mlebench.kit.twins.media import image_bytes

HEIGHT, WIDTH = 16, 11  # pixels of a picture; the catalogue gives realistic sizes
LICENSES = [{"id": 1, "name": "Attribution 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"}]


class TwinCategories:
    """Categories of pictures, the first ones frequent, the others rare. Each has a colour that its pictures share."""

    def __init__(self, rng: np.random.RandomState, count: int):
        self._rng = rng
        self.ids = np.cumsum(rng.choice([1, 1, 1, 2, 60], count)) - 1  # there are gaps
        self._colours = rng.randint(40, 216, (count, 1, 1, 3))

    def draw(self, pictures: int, *, least: int = 1, last_sizes: Sequence[int] = ()) -> np.ndarray:
        """For each picture the number of its category, in random order. Sizes of some categories may be given."""
        count = len(self.ids)
        share = 1 / np.arange(1, count + 1)
        sizes = least + self._rng.multinomial(pictures - least * count, share / share.sum())
        sizes[count - len(last_sizes) :] = last_sizes
        return self._rng.permutation(np.repeat(np.arange(count), sizes))

    def picture(self, category: int) -> bytes:
        """A JPEG of the colour of a category, lighter or darker as a whole and with some noise."""
        shade = self._rng.randint(-20, 21) + self._rng.randint(-8, 9, (HEIGHT, WIDTH, 1))
        return image_bytes(self._colours[category] + shade, "JPEG")


def ids_with_gaps(rng: np.random.RandomState, count: int) -> np.ndarray:
    """Distinct whole numbers in random order."""
    return rng.permutation(np.cumsum(rng.choice([1, 1, 1, 2, 5], count)))


def write_catalogue_twin(
    raw: TwinFolder,
    folder: str,
    categories: TwinCategories,
    others: dict[str, Any],
    *,
    place: str,
    encoding: str = "utf-8",
) -> list[int]:
    """Pictures in `train/` and `test/` below a folder, with `metadata.json` in each; returns the ids of test pictures.

    `others` are parts of the training metadata, such as the names of categories. `place` is a field of an annotation:
    it says where a picture comes from, and is 0 to 3.
    """
    common = {"info": {"year": 2020, "description": "Specimens", "contributor": "Jardín"}, "licenses": LICENSES}

    train = categories.draw(raw.count(240, least=120), last_sizes=(5, 4, 3, 2, 1))
    ids, numbers = ids_with_gaps(raw.rng, len(train)), categories.ids[train]
    names = [f"images/{number // 100:03d}/{number % 100:02d}/{id}.jpg" for number, id in zip(numbers, ids, strict=True)]
    _write_pictures(raw, f"{folder}train/", categories, train, names)
    locations = raw.rng.randint(0, 4, len(train))
    annotations = records_of({"category_id": numbers, "id": ids, "image_id": ids, place: locations})
    metadata = {"annotations": annotations, "images": _images(raw.rng, names, ids), **others, **common}
    raw.write(f"{folder}train/metadata.json", json.dumps(metadata, ensure_ascii=False).encode(encoding))

    test = categories.draw(raw.count(40, least=len(categories.ids)))
    ids = np.arange(len(test))
    names = [f"images/{id // 1000:03d}/{id}.jpg" for id in ids]
    _write_pictures(raw, f"{folder}test/", categories, test, names)
    metadata = {"images": _images(raw.rng, names, ids), **common}
    raw.write(f"{folder}test/metadata.json", json.dumps(metadata, ensure_ascii=False).encode(encoding))
    return ids.tolist()


def _images(rng: np.random.RandomState, names: list[str], ids: np.ndarray) -> list[dict[str, Any]]:
    widths, licenses = rng.randint(600, 760, len(ids)), np.ones(len(ids), dtype=int)
    heights = np.full(len(ids), 1000)
    return records_of({"file_name": names, "height": heights, "id": ids, "license": licenses, "width": widths})


def _write_pictures(
    raw: TwinFolder, folder: str, categories: TwinCategories, numbers: np.ndarray, names: list[str]
) -> None:
    for number, name in zip(numbers, names, strict=True):
        raw.write(folder + name, categories.picture(number))
