import numpy as np

from mlebench.kit.twins import TwinFolder, joined

# Words that praise or damn a film, and by how many points.
POINTS = {"brilliant": 2, "moving": 1, "funny": 1, "charming": 1, "flat": -1, "dull": -1, "tired": -1, "dreadful": -2}
# All others say nothing. Among them are signs as the original has them, a tab, and what readers take for gaps.
PLAIN = """the a of and to is it film story plot cast 's n't -- , . `` '' -LRB- -RRB- \\/ café naïve Amélie 8 1\\/2
    None NA null nan n/a NaN"""
PIECES = ['"quoted', 'said "no"', "a\ttab", "one , two", " "]


def twin(raw: TwinFolder) -> None:
    """Signal: every praising or damning word moves the sentiment of a phrase by one or two steps from the middle.

    So does the temper of its sentence, for all of its phrases.
    """
    count = raw.count(2000, least=200)
    train = _phrases(raw.rng, count, first=1)
    raw.write_zipped_csv("train.tsv", train, sep="\t")

    later = _phrases(raw.rng, raw.count(800), first=count + 1)
    del later["Sentiment"]
    raw.write_zipped_csv("test.tsv", later, sep="\t")
    raw.write_csv("sampleSubmission.csv", {"PhraseId": later["PhraseId"], "Sentiment": [2] * len(later["PhraseId"])})


def _phrases(rng: np.random.RandomState, count: int, first: int) -> dict[str, list]:
    """Some phrases of each sentence, from a single token to most of it."""
    plain = [*PLAIN.split(), *PIECES]
    words = np.array([*POINTS, *plain], dtype=object)
    points = np.array([*POINTS.values(), *([0] * len(plain))])
    share = np.where(points, 0.4 / len(POINTS), 0.6 / len(plain))
    lengths = np.minimum(rng.geometric(0.25, count), 20)
    ends = np.cumsum(lengths)
    chosen = rng.choice(len(words), ends[-1], p=share)
    noise = rng.choice([-1, 0, 1], count, p=[0.05, 0.9, 0.05])
    sentence = np.cumsum(rng.rand(count) < 0.1)
    temper = rng.choice([-2, 0, 2], count)[sentence]
    mood = np.add.reduceat(points[chosen], ends - lengths) + noise + temper
    return {
        "PhraseId": list(range(first, first + count)),
        "SentenceId": (first + sentence).tolist(),
        "Phrase": joined(words[chosen], lengths),
        "Sentiment": np.clip(mood + 2, 0, 4).tolist(),
    }
