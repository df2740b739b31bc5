from collections.abc import Iterator

import numpy as np

from mlebench.kit.twins import TwinFolder, pieces_of

PIECE = 50_000  # comments made in one go

# The nine graded identities, each with a word for it; the others are only columns.
WORDS = {
    "male": "man",
    "female": "woman",
    "homosexual_gay_or_lesbian": "gay",
    "christian": "Christian",
    "jewish": "Jewish",
    "muslim": "Muslim",
    "black": "black",
    "white": "white",
    "psychiatric_or_mental_illness": "bipolar",
}
IDENTITIES = """male female transgender other_gender heterosexual homosexual_gay_or_lesbian bisexual
    other_sexual_orientation christian jewish muslim hindu buddhist atheist other_religion black white asian latino
    other_race_or_ethnicity physical_disability intellectual_or_learning_disability psychiatric_or_mental_illness
    other_disability"""
KINDS = ("severe_toxicity", "obscene", "sexual_explicit", "identity_attack", "insult", "threat")
REACTIONS = ("funny", "wow", "sad", "likes", "disagree")
RUDE = ("what an idiot", "you are stupid", "pathetic loser", "total moron", "shut up")
PLAIN = ("well said", "I read the article", "taxes again", "see you at the vote", "thanks for the link")
ENDINGS = (
    ".",
    "",
    "!!!",
    ' "really", he said',
    "\nSecond line, with a comma",
    "\r\nWindows line",
    " naïve ☺",
    ' ""',
    "\t",
)
WHOLE_CELLS = ("NA", "null", "None", "007", " ")  # comments that readers of tables may lose or change
# Shares of annotators, as the original prints them.
LOW = ("0.0", "0.0", "0.0", "0.16666666666666666", "0.2", "0.30000000000000004", "0.4", "0.4999")
HIGH = ("0.5", "0.6", "0.6666666666666666", "0.7", "0.8333333333333334", "0.8936170212765957", "1.0")


def twin(raw: TwinFolder) -> None:
    """Signal: a rude phrase makes a comment toxic; words for identities do not, though they are often next to one."""
    ids = [_write_train(raw, train) for train in _pieces(raw, raw.count(400, least=100), first=59848)]
    for name, first in (("test_public_expanded.csv", 7_000_000), ("test_private_expanded.csv", 7_097_320)):
        for test in _pieces(raw, raw.count(200, least=60), first):
            raw.append_csv(name, test)
            raw.append_csv("test.csv", {column: test[column] for column in ("id", "comment_text")})
            raw.append_csv("sample_submission.csv", {"id": test["id"], "prediction": [0] * len(test["id"])})
            _write_to_all(raw, "test", test)
            ids.append(test["id"])
    _write_annotations(raw, np.concatenate(ids))


def _pieces(raw: TwinFolder, count: int, first: int) -> Iterator[dict[str, list]]:
    for size in pieces_of(count, PIECE):
        comments = _comments(raw.rng, size, first)
        yield comments
        first = comments["id"][-1]


def _write_to_all(raw: TwinFolder, split: str, comments: dict[str, list]) -> None:
    """Write to the table of all comments, which says what each one is for."""
    first = {"id": comments["id"], "comment_text": comments["comment_text"], "split": [split] * len(comments["id"])}
    raw.append_csv("all_data.csv", first | comments)


def _write_train(raw: TwinFolder, comments: dict[str, list]) -> list[int]:
    """The same columns as for the tests, in another order and with another name for the target; returns the ids."""
    first = ["severe_toxicity", "obscene", "identity_attack", "insult", "threat", *sorted(IDENTITIES.split())]
    last = ["sexual_explicit", "identity_annotator_count", "toxicity_annotator_count"]
    between = [name for name in comments if name not in {"id", "comment_text", "toxicity", *first, *last}]
    columns = {"id": comments["id"], "target": comments["toxicity"], "comment_text": comments["comment_text"]}
    raw.append_csv("train.csv", columns | {name: comments[name] for name in [*first, *between, *last]})
    _write_to_all(raw, "train", comments)
    return comments["id"]


def _write_annotations(raw: TwinFolder, ids: np.ndarray) -> None:
    """Two judgements for each comment, by workers who are known by number."""
    kinds = ("disability", "gender", "race_or_ethnicity", "religion", "sexual_orientation")
    start = 0
    for size in pieces_of(len(ids), 4 * PIECE):
        both = np.repeat(ids[start : start + size], 2)
        worker = raw.rng.randint(1, 9000, len(both))
        toxicity = {name: raw.rng.randint(2, size=len(both)) for name in ("toxic", "severe_toxic", *KINDS[1:])}
        raw.append_csv("toxicity_individual_annotations.csv", {"id": both, "worker": worker, **toxicity})
        named = {name: raw.rng.choice(["none", "other", "none other"], len(both)) for name in kinds}
        raw.append_csv("identity_individual_annotations.csv", {"id": both, "worker": worker, **named})
        start += size


def _comments(rng: np.random.RandomState, count: int, first: int) -> dict[str, list]:
    """Comments with annotators' findings. Each graded identity occurs in a toxic comment and in another one."""
    about = rng.choice(len(WORDS) + 1, count, p=[0.05] * len(WORDS) + [1 - 0.05 * len(WORDS)])
    toxic = rng.rand(count) < np.where(about < len(WORDS), 0.5, 0.15)
    certain = rng.permutation(count)[: 2 * len(WORDS)]
    about[certain], toxic[certain] = np.repeat(np.arange(len(WORDS)), 2), np.tile([True, False], len(WORDS))
    annotated = (about < len(WORDS)) | (rng.rand(count) < 0.3)
    return {
        "id": (first + np.cumsum(rng.randint(1, 4, count))).tolist(),
        "comment_text": _texts(rng, about, toxic),
        "created_date": [f"2017-{month:02d}-09 18:56:41.{month:03d}+00" for month in rng.randint(1, 13, count)],
        "publication_id": rng.randint(2, 120, count).tolist(),
        "parent_id": _with_gaps(rng.randint(10_000, 6_000_000, count), rng.rand(count) < 0.6),
        "article_id": rng.randint(2006, 400_000, count).tolist(),
        "rating": np.where(rng.rand(count) < 0.08, "rejected", "approved").tolist(),
        **{name: rng.poisson(0.4, count).tolist() for name in REACTIONS},
        "toxicity": _shares(rng, toxic),
        **{name: _shares(rng, toxic & (rng.rand(count) < 0.3)) for name in KINDS},
        **{name: _identity(rng, name, about, annotated) for name in IDENTITIES.split()},
        "identity_annotator_count": np.where(annotated, 4, 0).tolist(),
        "toxicity_annotator_count": rng.choice([4, 4, 10, 67], count).tolist(),
    }


def _texts(rng: np.random.RandomState, about: np.ndarray, toxic: np.ndarray) -> list[str]:
    words = np.array([f"as a {word} person: " for word in WORDS.values()] + [""], dtype=object)
    phrases = np.where(toxic, rng.choice(RUDE, len(toxic)), rng.choice(PLAIN, len(toxic))).astype(object)
    texts = words[about] + phrases + rng.choice(np.array(ENDINGS, dtype=object), len(toxic))
    places = rng.permutation(len(texts))[: len(WHOLE_CELLS)]
    texts[places] = WHOLE_CELLS
    return texts.tolist()


def _shares(rng: np.random.RandomState, high: np.ndarray) -> list[str]:
    return np.where(high, rng.choice(HIGH, len(high)), rng.choice(LOW, len(high))).tolist()


def _identity(rng: np.random.RandomState, name: str, about: np.ndarray, annotated: np.ndarray) -> list:
    mentioned = about == list(WORDS).index(name) if name in WORDS else np.zeros(len(about), dtype=bool)
    return [share if known else None for share, known in zip(_shares(rng, mentioned), annotated, strict=True)]


def _with_gaps(numbers: np.ndarray, known: np.ndarray) -> list:
    return [f"{number}.0" if there else None for number, there in zip(numbers.tolist(), known.tolist(), strict=True)]
