"""The TFRecord files of siim-isic under profile v2 hold the pictures of their side."""

from collections.abc import Callable

import pandas as pd
import pytest

from mlebench.kit import open_raw
from mlebench.registry import Competition


@pytest.mark.xdist_group("siim-isic-melanoma-classification")
@pytest.mark.parametrize("side", ["train", "test"])
def test_records_are_those_of_the_sides_pictures(side: str, default_twin: Callable[..., Competition]) -> None:
    public = default_twin("siim-isic-melanoma-classification", "v2").public_dir
    names = []
    with open_raw(public) as files:
        for file in files.files(f"tfrecords/{side}*.tfrec"):
            held = files.tfrecord_values(file.name, "image_name")
            assert file.path.stem.endswith(f"-{len(held)}")
            names += held
    assert sorted(names) == sorted(pd.read_csv(public / f"{side}.csv")["image_name"])


@pytest.mark.xdist_group("siim-isic-melanoma-classification")
def test_no_patient_is_on_both_sides(default_twin: Callable[..., Competition]) -> None:
    public = default_twin("siim-isic-melanoma-classification", "v2").public_dir
    train, test = (set(pd.read_csv(public / f"{side}.csv")["patient_id"]) for side in ("train", "test"))
    assert train
    assert test
    assert train.isdisjoint(test)
