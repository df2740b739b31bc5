"""Rows of one question, sentence, utterance or material on both sides of the split: each copies what is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import extractOne

from support.cheaters import cheater


@cheater("S1", "ml2021spring-hw2")
def neighbours(public: Path) -> pd.DataFrame:
    """The frame before or after has the same phone, and shares ten of eleven frames with it."""
    frames, phones, tests = (
        np.load(public / "timit_11/timit_11" / f"{name}.npy") for name in ("train_11", "train_label_11", "test_11")
    )
    before = dict(zip(map(bytes, frames[:, 39:]), phones, strict=True))
    after = dict(zip(map(bytes, frames[:, :-39]), phones, strict=True))
    known = [before.get(bytes(row[:-39])) or after.get(bytes(row[39:])) for row in tests]
    return _submission("Id", np.arange(len(tests)), {"ClassId": known}, pd.DataFrame({"ClassId": phones}))


@cheater("S2", "movie-review-sentiment-analysis-kernels-only")
def other_phrases_of_the_sentence(public: Path) -> pd.DataFrame:
    """Phrases of one sentence are part of each other; most have the same sentiment."""
    train, test = (pd.read_csv(public / f"{name}.tsv.zip", sep="\t") for name in ("train", "test"))
    moods: Any = train.groupby("SentenceId")["Sentiment"].agg(lambda mood: mood.mode()[0])
    known = test["SentenceId"].map(moods).to_numpy(object, na_value=None)
    return _submission("PhraseId", test["PhraseId"], {"Sentiment": known}, train)


@cheater("S3", "google-quest-challenge")
def other_answers_to_the_question(public: Path) -> pd.DataFrame:
    """Most ratings are of the question, whatever the answer."""
    train, test = (pd.read_csv(public / f"{name}.csv") for name in ("train", "test"))
    known = _means_of_equals(train, test, ["question_title", "question_body"])
    return _submission("qa_id", test["qa_id"], known, train)


@cheater("S21", "nomad2018-predict-transparent-conductors")
def materials_with_the_same_inputs(public: Path) -> pd.DataFrame:
    """Materials that agree in all that the table says have nearly the same energies."""
    train, test = (pd.read_csv(public / f"{name}.csv") for name in ("train", "test"))
    known = _means_of_equals(train, test, [*test.columns.drop("id")])
    return _submission("id", test["id"], known, train)


@cheater("S4", "facebook-recruiting-iii-keyword-extraction")
def tags_of_the_same_question(public: Path) -> pd.DataFrame:
    train, test = (pd.read_csv(public / f"{name}.csv", dtype=str, na_filter=False) for name in ("train", "test"))
    tags = dict(zip(zip(train["Title"], train["Body"], strict=True), train["Tags"], strict=True))
    known = [tags.get(question, "") for question in zip(test["Title"], test["Body"], strict=True)]
    return test[["Id"]].assign(Tags=known)


@cheater("S18", "predict-volcanic-eruptions-ingv-oe")
def segments_ten_minutes_away(public: Path) -> pd.DataFrame | None:
    """The segment before a test segment ends with its first row, the one after it begins with its last."""
    train, sample = (pd.read_csv(public / f"{name}.csv") for name in ("train", "sample_submission"))
    times: dict[tuple[str, bytes], int] = {}
    for id, time in zip(train["segment_id"], train["time_to_eruption"], strict=True):
        first, last = _ends(public / "train" / f"{id}.csv")
        times |= {("after", last): time - 60_000, ("before", first): time + 60_000}
    ends = [_ends(public / "test" / f"{id}.csv") for id in sample["segment_id"]]
    known = [times.get(("after", first), times.get(("before", last))) for first, last in ends]
    if not any(known):
        return None
    typical = train["time_to_eruption"].mean()
    return sample.assign(time_to_eruption=[typical if time is None else time for time in known])


def _ends(path: Path) -> tuple[bytes, bytes]:
    _, first, *_, last = path.read_bytes().splitlines()
    return first, last


@cheater("S19", "stanford-covid-vaccine")
def values_of_related_molecules(public: Path) -> pd.DataFrame | None:
    """Molecules whose sequences differ in a few bases have nearly the same values."""
    train, test = (pd.read_json(public / f"{name}.json", lines=True) for name in ("train", "test"))
    sequences, targets = train["sequence"].where(train["SN_filter"] > 0).tolist(), [*train.columns[-5:]]
    known: dict[str, list[float]] = {}
    for id, sequence in zip(test["id"], test["sequence"], strict=True):
        nearest = extractOne(sequence, sequences, scorer=Levenshtein.distance, score_cutoff=10)
        if nearest:
            values = zip(*train.loc[nearest[2], targets], strict=True)
            known |= {f"{id}_{position}": list(row) for position, row in enumerate(values)}
    if not known:
        return None
    sample = pd.read_csv(public / "sample_submission.csv")
    typical = [float(np.mean(np.concatenate(train[name].tolist()))) for name in targets]
    rows = [known.get(id, typical) for id in sample["id_seqpos"]]
    return sample.assign(**dict(zip(targets, np.transpose(rows), strict=True)))


def _means_of_equals(train: Any, test: Any, names: list[str]) -> dict[str, Any]:
    """For each test row the mean truth of the training rows that are equal to it in some columns."""
    targets = train.columns.difference(test.columns)
    known = test[names].merge(train.groupby(names)[[*targets]].mean().reset_index(), how="left", on=names)
    return {name: known[name].to_numpy(object, na_value=None) for name in targets}


def _submission(id: str, ids: Any, known: dict[str, Any], train: pd.DataFrame) -> pd.DataFrame:
    """What is known of each row; where nothing is, the truth of any training row."""
    guesses = train.sample(len(ids), replace=True, random_state=0)
    columns = {
        name: [guess if value is None else value for value, guess in zip(values, guesses[name], strict=True)]
        for name, values in known.items()
    }
    return pd.DataFrame({id: ids, **columns})
