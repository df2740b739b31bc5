"""Catalogues of images are split, renamed and placed; the records they were read from are unchanged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.kit import ImageCatalogue, open_raw
from mlebench.kit.twins import TwinCategories, TwinFolder, records_of, write_catalogue_twin

pytestmark = pytest.mark.bytes

CATEGORIES = [7, 7, 3, 7, 3, 7, 9, 7]
IMAGES = records_of({"id": range(8), "file_name": [f"a/{n}.jpg" for n in range(8)], "width": [5] * 8})
ANNOTATIONS = records_of({"image_id": range(8), "category_id": CATEGORIES})
METADATA = {"images": IMAGES, "annotations": ANNOTATIONS, "info": {"name": "é"}, "categories": [{"id": 3}]}


def read(folder: Path, content: Any = METADATA, **options: Any) -> ImageCatalogue:
    text = json.dumps(content, ensure_ascii=False)
    (folder / "m.json").write_bytes(text.encode(options.get("encoding", "utf-8")))
    with open_raw(folder) as raw:
        return ImageCatalogue.read(raw, "m.json", **options)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_catalogue_says_what_its_file_says(tmp_path: Path, encoding: str) -> None:
    catalogue = read(tmp_path, encoding=encoding)
    assert catalogue.as_json() == METADATA
    assert catalogue.as_json("info", "images") == {"info": METADATA["info"], "images": IMAGES}
    assert catalogue.categories == CATEGORIES
    table = catalogue.labels("Id", "Predicted")
    assert (table.columns, table["Id"].tolist()) == (["Id", "Predicted"], list(range(8)))
    assert table["Predicted"].tolist() == CATEGORIES


def test_every_image_goes_with_its_annotation_and_file_to_one_side(tmp_path: Path) -> None:
    catalogue = read(tmp_path)
    train, test = catalogue.split(test_size=0.2, seed=0, small_below=5)
    # The five of 7 are split by permutation, the last of the two of 3 is for testing, the only 9 for training.
    order = np.array([0, 1, 3, 5, 7])[np.random.RandomState(0).permutation(5)].tolist()
    assert [image["id"] for image in train.images] == [*order[1:], 2, 6]
    assert sorted(image["id"] for image in test.images) == sorted([order[0], 4])
    for part in (train, test):
        assert [one["image_id"] for one in part.annotations] == [image["id"] for image in part.images]
        assert list(part.raw_names) == [image["file_name"] for image in part.images]
        assert part.as_json("info", "categories") == {name: METADATA[name] for name in ("info", "categories")}


def test_renamed_images_are_still_found_and_the_old_records_unchanged(tmp_path: Path) -> None:
    catalogue = read(tmp_path)
    one = catalogue.take(np.array([6, 2]))
    renamed, numbered = one.renamed(["x/6.jpg", "x/2.jpg"]), one.numbered("{thousand:03d}/t{number:02d}.jpg")
    assert list(renamed.images) == [IMAGES[6] | {"file_name": "x/6.jpg"}, IMAGES[2] | {"file_name": "x/2.jpg"}]
    assert list(renamed.annotations) == [ANNOTATIONS[6], ANNOTATIONS[2]]
    assert list(numbered.images) == [
        {"id": "0", "file_name": "000/t00.jpg", "width": 5},
        {"id": "1", "file_name": "000/t01.jpg", "width": 5},
    ]
    assert [annotation["image_id"] for annotation in numbered.annotations] == ["0", "1"]
    with open_raw(tmp_path) as raw:
        placed = [(file.name, name) for file, name in numbered.placements(raw, "train/", "test/")]
    assert placed == [("train/a/6.jpg", "test/000/t00.jpg"), ("train/a/2.jpg", "test/000/t01.jpg")]
    assert catalogue.as_json() == METADATA


def test_ids_may_have_another_name(tmp_path: Path) -> None:
    images = [{"image_id": image["id"], "file_name": image["file_name"]} for image in IMAGES]
    numbered = read(tmp_path, METADATA | {"images": images}, id="image_id").numbered("{number}.jpg")
    assert numbered.images[7] == {"image_id": "7", "file_name": "7.jpg"}
    assert numbered.labels("Id", "Predicted")["Id"].tolist() == list("01234567")


@pytest.mark.parametrize("annotations", [ANNOTATIONS[::-1], ANNOTATIONS[1:], []])
def test_lists_that_do_not_match_are_named(tmp_path: Path, annotations: list[dict]) -> None:
    with pytest.raises(PrerequisiteError, match=r"m\.json does not list images and annotations in one order"):
        read(tmp_path, METADATA | {"annotations": annotations})


def test_a_twin_has_rare_and_frequent_categories_and_files_for_all_images(tmp_path: Path) -> None:
    raw = TwinFolder(tmp_path, seed=1)
    categories = TwinCategories(raw.rng, 20)
    ids = write_catalogue_twin(raw, "x/", categories, {"regions": []}, place="region_id")
    with open_raw(tmp_path) as opened:
        catalogue = ImageCatalogue.read(opened, "x/train/metadata.json")
        assert all(opened.exists(file.name) for file, _ in catalogue.placements(opened, "x/train/"))
        assert len(opened.files("x/test/images/**")) == len(ids)
        assert opened.json("x/test/metadata.json").keys() == {"images", "info", "licenses"}
    sizes = [catalogue.categories.count(id) for id in categories.ids]
    assert sizes[-5:] == [5, 4, 3, 2, 1]
    assert sizes[0] == max(sizes)
