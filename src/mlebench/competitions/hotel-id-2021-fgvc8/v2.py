"""Photographs that look alike are on one side (S12); one to five different hotels are guessed for each (G21)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness, split_guesses
from mlebench.metrics import mean_reciprocal_rank_at_k

from .prepare import TEST_SHARE, labels_of, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = labels_of(raw)
    images, chains = labels["image"], labels["chain"]
    photographs = [raw.file(f"train_images/{chain}/{image}") for image, chain in zip(images, chains, strict=True)]
    train, test = split_by_likeness(labels, photographs, images, private, test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="image", target="hotel_id", values="text")
    return mean_reciprocal_rank_at_k(true, split_guesses("hotel_id", predicted, most=5), k=5)
