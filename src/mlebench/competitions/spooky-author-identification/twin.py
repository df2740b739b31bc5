import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, joined

SHARES = {"EAP": 0.403494, "HPL": 0.287808, "MWS": 0.308698}
FAVOURITES = (
    "cipher raven upon casket balloon minute altogether bottle pendulum Jupiter façade velocity",
    "eldritch cyclopean nameless fungous dæmon Arkham gambrel antique squamous Yog-Sothoth whispered ψυχή",
    "Raymond Perdita glacier misery benevolent Adrian tears cottage Windsor affection wretched despair",
)
COMMON = "the of and, a to I in was that my; had with his it as he which for but not, at from by is on me be"


def twin(raw: TwinFolder) -> None:
    """Signal: a third of the words of every sentence are favourites of its author."""
    count, later_count = raw.count(600, least=100), raw.count(200)
    numbers = raw.rng.permutation(count + later_count) + 1  # train and test share one range, in no order
    train = _sentences(raw.rng, numbers[:count])
    later = _sentences(raw.rng, numbers[count:])
    del later["author"]
    guess = {name: [share] * later_count for name, share in SHARES.items()}

    for name, columns in (("train", train), ("test", later), ("sample_submission", {"id": later["id"], **guess})):
        raw.write_zip(f"{name}.zip", {f"{name}.csv": csv_bytes(columns, quote_text=True)})


def _sentences(rng: np.random.RandomState, numbers: np.ndarray) -> dict[str, list[str]]:
    count = len(numbers)
    author = rng.choice(len(SHARES), count, p=list(SHARES.values()))
    lengths = rng.randint(5, 30, count)
    total = int(lengths.sum())
    favourites, common = np.array([words.split() for words in FAVOURITES]), np.array(COMMON.split())
    words = np.where(
        rng.rand(total) < 1 / 3,
        favourites[np.repeat(author, lengths), rng.randint(0, favourites.shape[1], total)],
        common[rng.randint(0, len(common), total)],
    )
    opening = rng.choice(["", "", "", '"', "The ", "  "], count)
    ending = rng.choice([".", ".", ";", "?", '."', ', "said he".', "—"], count)
    said = joined(words, lengths)
    texts = [f"{first}{middle}{last}" for first, middle, last in zip(opening, said, ending, strict=True)]
    for row in np.flatnonzero(rng.rand(count) < 0.01):
        texts[row] = "None"  # a sentence that reads like a missing value
    return {
        "id": [f"id{number:05d}" for number in numbers],
        "text": texts,
        "author": np.array(list(SHARES))[author].tolist(),
    }
