import json
from itertools import combinations

import numpy as np

from mlebench.kit.twins import TwinCategories, TwinFolder, json_bytes, records_of

MOST_SPECIES = 15_501  # as in the original
GENERA = ("Abies", "Carex", "Quercus", "Ægopodium", "Salix")
FAMILIES = ("Pinaceae", "Cyperaceae", "Fagaceae", "Apiaceae", "Salicaceae")
LICENSES = [{"license_id": 0, "name": "CC BY 4.0"}, {"license_id": 1, "name": "CC0 1.0"}]


def twin(raw: TwinFolder) -> None:
    """Signal: sheets of one species have one colour, a little lighter or darker from sheet to sheet."""
    species = TwinCategories(raw.rng, min(raw.count(24, least=12), MOST_SPECIES))
    genus = raw.rng.randint(0, len(GENERA), len(species.ids))
    pairs = list(combinations(range(1, len(GENERA) + 1), 2))
    facts = {
        "categories": records_of(_names(species.ids, genus)),
        "genera": records_of({"genus_id": range(1, len(GENERA) + 1), "genus": GENERA}),
        "institutions": records_of({"institution_id": range(3), "collectionCode": ["ny", "us", "b’dwg"]}),
        "distances": [
            {"genus_id_x": one, "genus_id_y": other, "distance": round(raw.rng.rand() * 200, 6)} for one, other in pairs
        ],
        "license": LICENSES,
    }

    sheets = np.sort(species.draw(raw.count(240, least=100), least=2))
    numbers, places = species.ids[sheets].tolist(), _places_with_gaps(raw.rng, sheets)
    ids = [f"{number:05d}__{place:03d}" for number, place in zip(numbers, places, strict=True)]
    names = [f"{id[:3]}/{id[3:5]}/{id}.jpg" for id in ids]
    images = {"image_id": ids, "file_name": names, "license": raw.rng.randint(0, 2, len(ids))}
    institutions = raw.rng.randint(0, 3, len(ids))
    annotations = {
        "genus_id": genus[sheets] + 1,
        "institution_id": institutions,
        "category_id": numbers,
        "image_id": ids,
    }
    metadata = {"annotations": records_of(annotations), "images": records_of(images), **facts}
    raw.write("train_metadata.json", json.dumps(metadata, ensure_ascii=False).encode("utf-8"))
    for name, sheet in zip(names, sheets, strict=True):
        raw.write(f"train_images/{name}", species.picture(sheet))
    _write_test(raw, species)


def _names(ids: np.ndarray, genus: np.ndarray) -> dict[str, list]:
    return {
        "category_id": ids.tolist(),
        "scientificName": [f"{GENERA[place]} no{number} (L.) Häckel" for place, number in zip(genus, ids, strict=True)],
        "family": [FAMILIES[place] for place in genus],
        "genus": [GENERA[place] for place in genus],
        "species": [f"no{number}" for number in ids],
        "authors": ["(L.) Häckel"] * len(ids),
    }


def _places_with_gaps(rng: np.random.RandomState, sheets: np.ndarray) -> list[int]:
    """The number of each sheet within its species, where sheets of a species are together."""
    steps = np.cumsum(rng.choice([1, 1, 1, 2], len(sheets)))
    _, first, which = np.unique(sheets, return_index=True, return_inverse=True)
    return (steps - steps[first][which] + 1).tolist()


def _write_test(raw: TwinFolder, species: TwinCategories) -> None:
    sheets = species.draw(raw.count(40, least=len(species.ids)))
    names = [f"{number // 1000:03d}/test-{number:06d}.jpg" for number in range(len(sheets))]
    ids = list(map(str, range(len(sheets))))
    images = {"image_id": ids, "file_name": names, "license": raw.rng.randint(0, 2, len(ids))}
    raw.write("test_metadata.json", json_bytes(records_of(images)))
    for name, sheet in zip(names, sheets, strict=True):
        raw.write(f"test_images/{name}", species.picture(sheet))
    raw.write_csv("sample_submission.csv", {"Id": ids, "Predicted": [42] * len(ids)})
