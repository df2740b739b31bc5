"""Names of public files that give away the truth of test rows, and those that do not."""

import pandas as pd
import pytest

from mlebench.contract.file_names import telling_name, truth_of_rows

BIRDS = {f"p{number:05d}": ("robin", "great tit")[number * 7 % 5 % 2] for number in range(40)}


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("test/{word}_{id}.png", "contained"),
        ("test/{word}/{id}.png", "a folder"),
        ("test/{id}-{WORD}.jpg", "in capitals"),
        ("photos.zip/{code}{id}.png", "no separator"),
        ("test/{code}/{id}.png", "a code"),
    ],
)
def test_names_that_give_away_the_truth_are_found(pattern: str, kind: str) -> None:
    names = {
        id: pattern.format(id=id, word=bird.replace(" ", "_"), WORD=bird.upper(), code=f"{len(bird)}/")
        for id, bird in BIRDS.items()
    }
    training = [f"train/robin_t{number}.png" for number in range(40)]
    assert telling_name([*training, *names.values()], BIRDS) in {(name, id) for id, name in names.items()}, kind


@pytest.mark.parametrize(
    "pattern", ["test/{id}.png", "test/{shard}/{id}.png", "test/{id}/{shard}.dcm", "robin/{id}.png"]
)
def test_names_that_say_no_more_than_the_id_are_not(pattern: str) -> None:
    names = [pattern.format(id=id, shard=number % 4) for number, id in enumerate(BIRDS)]
    assert telling_name(names, BIRDS) is None


def test_numbers_and_classes_in_columns_are_looked_for_too() -> None:
    weights = pd.DataFrame({"id": range(100, 110), "kg": [1.5, *range(9)]})
    truth = truth_of_rows(weights, "id", ["kg"])
    assert truth["101"] == "0"
    assert telling_name([f"{id}_{value}kg.png".replace("kg", "") for id, value in truth.items()], truth)
    classes = pd.DataFrame({"id": BIRDS.keys(), "robin": [bird == "robin" for bird in BIRDS.values()]})
    classes = classes.assign(tit=~classes["robin"]) * 1
    truth = truth_of_rows(classes, "id", ["robin", "tit"])
    assert telling_name([f"{value}/{id}.png" for id, value in truth.items()], truth)
