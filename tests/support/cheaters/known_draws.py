"""Draws with a published seed: each repeats them, and looks at no picture and no text."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from support.cheaters import cheater


@cheater("L12", "dogs-vs-cats-redux-kernels-edition")
def cats_come_first(public: Path) -> pd.DataFrame:
    """Raw files are sorted by name, which begins with the kind."""
    sample = pd.read_csv(public / "sample_submission.csv")
    kinds = [path.name.split(".")[0] for path in public.glob("train/*.jpg")]
    return sample.assign(label=(_class_at_its_position(sample, "label", kinds)["label"] == "dog").astype(int))


@cheater("L12", "paddy-disease-classification")
def diseases_in_order(public: Path) -> pd.DataFrame:
    """The raw table is sorted by label."""
    sample = pd.read_csv(public / "sample_submission.csv")
    return _class_at_its_position(sample, "label", pd.read_csv(public / "train.csv")["label"])


@cheater("L12", "plant-seedlings-classification")
def species_in_order(public: Path) -> pd.DataFrame:
    """Raw files are sorted by folder, and each species has one."""
    sample = pd.read_csv(public / "sample_submission.csv")
    return _class_at_its_position(sample, "species", [path.parent.name for path in public.glob("train/*/*.png")])


@cheater("L12", "tensorflow-speech-recognition-challenge")
def words_in_order(public: Path) -> pd.DataFrame:
    """Raw clips are sorted by word."""
    sample = pd.read_csv(public / "sample_submission.csv")
    return _class_at_its_position(sample, "label", [path.parent.name for path in public.glob("train/audio/*/*.wav")])


def _class_at_its_position(sample: pd.DataFrame, target: str, train: Iterable[str]) -> pd.DataFrame:
    """Test rows are the first of a shuffle of all rows, which were sorted by class."""
    classes = np.array(sorted(train))
    order = np.random.RandomState(0).permutation(len(sample) + len(classes))
    tests, known = order[: len(sample)], np.sort(order[len(sample) :])
    return sample.assign(**{target: classes[np.searchsorted(known, tests).clip(max=len(known) - 1)]})


def _category_by_category(sample: pd.DataFrame, target: str, train: Sequence[Any], share: float) -> pd.DataFrame:
    """Test rows were shuffled category by category; categories have the same shares on both sides."""
    positions = list(range(len(sample)))
    random.Random(0).shuffle(positions)
    sizes = pd.Series(train).value_counts(sort=False)  # in the order in which categories first appear
    tests = np.cumsum(np.ceil(sizes.to_numpy() * share / (1 - share)))
    blocks = np.minimum(np.searchsorted(tests, np.array(positions), side="right"), len(sizes) - 1)
    return sample.assign(**{target: sizes.index.to_numpy()[blocks]})


def _catalogue_cheater(competition: str, catalogue: str, sample: str, columns: tuple[str, str], share: float) -> None:
    @cheater("L12", competition)
    def cheat(public: Path) -> pd.DataFrame:
        annotations = json.loads((public / catalogue).read_text())["annotations"]
        rows = pd.read_csv(public / sample, usecols=[*columns])
        return _category_by_category(rows, columns[1], [row["category_id"] for row in annotations], share)


_catalogue_cheater(
    "herbarium-2020-fgvc7", "nybg2020/train/metadata.json", "sample_submission.csv", ("Id", "Predicted"), 0.2
)
_catalogue_cheater("herbarium-2021-fgvc8", "train/metadata.json", "sample_submission.csv", ("Id", "Predicted"), 0.2)
_catalogue_cheater("herbarium-2022-fgvc9", "train_metadata.json", "sample_submission.csv", ("Id", "Predicted"), 0.2)
_catalogue_cheater(
    "inaturalist-2019-fgvc6", "train2019.json", "kaggle_sample_submission.csv", ("id", "predicted"), 0.12
)


@cheater("L13", "alaska2-image-steganalysis")
def drawn_versions(public: Path) -> pd.DataFrame:
    """Cover or not is the first of two draws for each picture, after a shuffle of them all."""
    sample = pd.read_csv(public / "sample_submission.csv")
    rng = random.Random(0)
    rng.shuffle([None] * len(sample))
    labels = []
    for _ in range(len(sample)):
        labels.append(0 if rng.choice([True, False]) else 1)
        if labels[-1]:
            rng.choice(range(3))
    return sample.assign(Label=labels)
