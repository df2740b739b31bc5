"""Rows of one group that are on both sides of a split."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd

from support.cheaters import cheater

BOOK = re.compile("[a-z]+|[0-9]+")


@cheater("S15", "spaceship-titanic")
def fate_of_companions(public: Path) -> pd.DataFrame | None:
    """Who travels together shares a fate."""
    train, test = (pd.read_csv(public / f"{side}.csv") for side in ("train", "test"))
    fates = train["Transported"].groupby(train["PassengerId"].str[:4]).mean()
    known = test["PassengerId"].str[:4].map(fates)
    if known.isna().all():
        return None
    return test[["PassengerId"]].assign(Transported=known.fillna(0.5) >= 0.5)


@cheater("S14", "mlsp-2013-birds")
def birds_of_the_same_place_and_day(public: Path) -> pd.DataFrame | None:
    """Who sings in one recording sings in the next."""
    essential = public / "essential_data"
    names = pd.read_csv(essential / "rec_id2filename.txt", index_col="rec_id")["filename"]
    visits = {id: name.rsplit("_", maxsplit=2)[0] for id, name in names.items()}
    heard: dict[str, list[list[str]]] = {}
    for line in (essential / "rec_labels_test_hidden.txt").read_text(encoding="utf-8").splitlines()[1:]:
        id, *species = line.split(",")
        if species != ["?"]:
            heard.setdefault(visits[int(id)], []).append(species)
    sample = pd.read_csv(public / "sample_submission.csv")
    if heard.keys().isdisjoint(visits[id // 100] for id in sample["Id"]):
        return None
    shares = [_share(str(id % 100), heard.get(visits[id // 100], [])) for id in sample["Id"]]
    return sample.assign(Probability=shares)


def _share(species: str, recordings: list[list[str]]) -> float:
    return sum(species in heard for heard in recordings) / max(len(recordings), 1)


@cheater("S13", "kuzushiji-recognition")
def what_the_book_always_says(public: Path) -> pd.DataFrame | None:
    """The pages of a book are alike: what stands on most of them stands on all."""
    train, sample = (pd.read_csv(public / f"{name}.csv") for name in ("train", "sample_submission"))
    pages: dict[str, list[list[str]]] = {}
    for id, labels in zip(train["image_id"], train["labels"].str.split(), strict=True):
        pages.setdefault(_book(id), []).append(labels)
    texts = {book: _usual(labels) for book, labels in pages.items()}
    books = [_book(id) for id in sample["image_id"]]
    return sample.assign(labels=[texts.get(book, "") for book in books]) if texts.keys() & {*books} else None


def _usual(pages: list[list[str]]) -> str:
    """The characters of most pages, each with a point inside its box."""
    boxes = Counter[tuple[str, str, str]]()
    for labels in pages:
        boxes.update(zip(labels[0::5], labels[1::5], labels[2::5], strict=True))
    usual = [box for box, count in boxes.items() if 2 * count > len(pages)]
    return " ".join(f"{character} {int(x) + 1} {int(y) + 1}" for character, x, y in usual)


def _book(page: str) -> str:
    named = BOOK.match(page)
    return named[0] if named else page
