from typing import Any

import numpy as np

from mlebench.kit.twins import TwinCategories, TwinFolder, hex_ids, json_bytes, records_of, tar_gz_bytes

MOST_SPECIES = 1010  # as in the original
GROUPS = ("Amphibians", "Birds", "Fungi", "Insects", "Plants", "Reptiles")
HOLDERS = ("Ana López", "björn 🐦", 'J. "Jo" Doe', "")
COMMON = {
    "info": {"year": 2019, "version": "1.0", "description": "Observations", "date_created": "2019-02-01"},
    "licenses": [{"id": 1, "lname": "", "name": "Attribution-NonCommercial", "url": "http://creativecommons.org/"}],
}


def twin(raw: TwinFolder) -> None:
    """Signal: photographs of one species have one colour, a little lighter or darker from photo to photo."""
    species = TwinCategories(raw.rng, min(raw.count(20, least=14), MOST_SPECIES))
    categories = records_of(
        {"id": species.ids, "name": [*map(str, species.ids)], "supercategory": [*map(_group, species.ids)]}
    )
    train = species.draw(raw.count(300, least=150), last_sizes=(5, 4, 3, 2, 1))
    val = raw.rng.permutation(np.repeat(np.arange(len(species.ids)), 3))
    test = species.draw(raw.count(40, least=len(species.ids)))
    names = iter(hex_ids(raw.rng, len(train) + len(val) + len(test), 32))

    photos: dict[str, bytes] = {}
    first = 0
    for part, drawn in (("train", train), ("val", val)):
        numbers = species.ids[drawn]
        ids = raw.rng.permutation(np.arange(first, first + len(drawn)))
        files = [f"train_val2019/{_group(number)}/{number}/{next(names)}.jpg" for number in numbers]
        annotations = records_of({"id": ids, "image_id": ids, "category_id": numbers})
        metadata = {"images": _images(raw.rng, files, ids), "annotations": annotations, "categories": categories}
        raw.write(f"{part}2019.json", json_bytes({**COMMON, **metadata}))
        photos.update((name, species.picture(number)) for name, number in zip(files, drawn, strict=True))
        first += len(drawn)
    raw.write("train_val2019.tar.gz", tar_gz_bytes(photos))

    ids, files = np.arange(first, first + len(test)), [f"test2019/{next(names)}.jpg" for _ in test]
    raw.write("test2019.json", json_bytes({**COMMON, "images": _images(raw.rng, files, ids)}))
    photos = {name: species.picture(number) for name, number in zip(files, test, strict=True)}
    raw.write("test2019.tar.gz", tar_gz_bytes(photos))
    raw.write_csv("kaggle_sample_submission.csv", {"id": ids, "predicted": ["0 1 2"] * len(ids)})


def _group(category: int) -> str:
    return GROUPS[category % len(GROUPS)]


def _images(rng: np.random.RandomState, names: list[str], ids: np.ndarray) -> list[dict[str, Any]]:
    sides = rng.choice([600, 800, 450], (2, len(ids)))
    fields = {"license": np.ones(len(ids), dtype=int), "rights_holder": rng.choice(HOLDERS, len(ids))}
    return records_of({"id": ids, "file_name": names, "width": sides[0], "height": sides[1], **fields})
