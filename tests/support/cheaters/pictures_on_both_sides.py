"""Pictures of one thing that are on both sides of a split."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from mlebench.kit import picture_hash
from support.cheaters import cheater


@cheater("S11", "aptos2019-blindness-detection")
def grade_of_the_same_eye(public: Path) -> pd.DataFrame | None:
    """The grade of the labelled picture with the nearest hash, if that differs in four bits at most."""
    train = pd.read_csv(public / "train.csv", dtype={"id_code": str})
    test = pd.read_csv(public / "test.csv", dtype=str)
    known = [_hash(public / "train_images" / f"{id}.png") for id in train["id_code"]]
    grades, predicted = train["diagnosis"].to_numpy(), {}
    for id in test["id_code"]:
        hash = _hash(public / "test_images" / f"{id}.png")
        distances = [(hash ^ other).bit_count() for other in known]
        if min(distances) <= 4:
            predicted[id] = grades[np.argmin(distances)]
    if not predicted:
        return None
    return test.assign(diagnosis=[predicted.get(id, 0) for id in test["id_code"]])


@cheater("S10", "petfinder-pawpularity-score")
def popularity_of_the_same_photo(public: Path) -> pd.DataFrame | None:
    train, sample = pd.read_csv(public / "train.csv"), pd.read_csv(public / "sample_submission.csv")
    photos = [(public / "train" / f"{id}.jpg").read_bytes() for id in train["Id"]]
    known = dict(zip(photos, train["Pawpularity"], strict=True))
    copies = [known.get((public / "test" / f"{id}.jpg").read_bytes()) for id in sample["Id"]]
    if not any(copies):
        return None
    typical = train["Pawpularity"].mean()
    return sample.assign(Pawpularity=[typical if copy is None else copy for copy in copies])


@cheater("S9", "denoising-dirty-documents")
def clean_page_of_the_same_text(public: Path) -> pd.DataFrame | None:
    """The clean page, perhaps shifted, whose letters are all on the dirty page; black where there is none."""
    clean = [_grey(path) for path in sorted((public / "train_cleaned").glob("*.png"))]
    shifted = [np.roll(page, shift, axis=1) for page in clean for shift in range(-2, 3)]
    rows = []
    for path in sorted((public / "test").glob("*.png")):
        dirty = _grey(path)
        equal = (page for page in shifted if page.shape == dirty.shape and (dirty == page)[page < 90].all())
        for (row, column), value in np.ndenumerate(next(equal, np.zeros_like(dirty))):
            rows.append((f"{path.stem}_{row + 1}_{column + 1}", value / 255))
    return pd.DataFrame(rows, columns=["id", "value"])


@cheater("S12", "plant-pathology-2021-fgvc8")
def labels_of_the_same_leaf(public: Path) -> pd.DataFrame:
    return _labels_of_nearest(public, "image", "labels", "train_images/{image}", "test_images")


@cheater("S12", "hotel-id-2021-fgvc8")
def hotel_of_the_same_view(public: Path) -> pd.DataFrame:
    return _labels_of_nearest(public, "image", "hotel_id", "train_images/{chain}/{image}", "test_images")


@cheater("S12", "whale-categorization-playground")
def whale_of_the_same_dive(public: Path) -> pd.DataFrame:
    return _labels_of_nearest(public, "Image", "Id", "train/{Image}", "test")


def _labels_of_nearest(public: Path, id: str, target: str, train_path: str, test_folder: str) -> pd.DataFrame:
    """For each test picture the label of the labelled picture with the nearest hash, however far that is."""
    train, sample = pd.read_csv(public / "train.csv"), pd.read_csv(public / "sample_submission.csv")
    known = [_hash(public / train_path.format(**row)) for row in train.to_dict("records")]
    tests = [_hash(public / test_folder / name) for name in sample[id]]
    nearest = [np.argmin([(hash ^ other).bit_count() for other in known]) for hash in tests]
    return sample.assign(**{target: train[target].to_numpy()[nearest]})


def _hash(path: Path) -> int:
    return picture_hash(_grey(path))


def _grey(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L"))
