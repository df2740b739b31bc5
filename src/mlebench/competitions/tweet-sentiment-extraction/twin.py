import numpy as np

from mlebench.kit import split_rows
from mlebench.kit.twins import TwinFolder, hex_ids, joined

MOODS = {
    "neutral": "going to_work train number 5 http://is.gd/4kl2 pm lunch @friend_99 **** 2nite radio",
    "positive": "love awesome thanks happy :) great fun yay! <3 (nice) lovely Süß",
    "negative": "sad hate miss sorry :( sucks ugh bored, tired 'ill' worst ï¿½ï¿½ow",
}
COMMON = "i`m the a my so to and it`s you just on in for of that, is at me with but... have was day NA lol"


def twin(raw: TwinFolder) -> None:
    """Signal: adjacent words of a mood are selected; of a neutral tweet, everything."""
    columns = _tweets(raw.rng, raw.count(500, least=60))
    # One tweet has no text, and one reads like a missing value. As in the original, neither is in the test split: a le
    # submission, which is empty, could not be graded there.
    rows, _ = split_rows(list(range(len(columns["textID"]))), test_size=0.1, seed=0)
    for row, text in zip(rows, (None, "null"), strict=False):
        columns["text"][row] = columns["selected_text"][row] = text
        columns["sentiment"][row] = "neutral"
    raw.write_csv("train.csv", columns)

    later = _tweets(raw.rng, raw.count(60))
    del later["selected_text"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"textID": later["textID"], "selected_text": [None] * len(later["textID"])})


def _tweets(rng: np.random.RandomState, count: int) -> dict[str, list]:
    mood = rng.choice(len(MOODS), count, p=[0.4, 0.32, 0.28])
    moody, common = np.array([words.split() for words in MOODS.values()]), np.array(COMMON.split())
    before, during, after = rng.randint(0, 9, count), rng.randint(1, 4, count), rng.randint(0, 9, count)
    starts = [_texts(rng, common, lengths) for lengths in (before, after)]
    spans = _texts(rng, moody, during, mood)
    blanks = rng.choice(["", "", "", " ", "  "], (2, count))
    cuts = rng.rand(count) < 0.05  # marked by hand: now and then a letter is missing
    texts, selected = [], []
    for row in range(count):
        words = " ".join(part for part in (starts[0][row], spans[row], starts[1][row]) if part)
        texts.append(f"{blanks[0, row]}{words}{blanks[1, row]}")
        selected.append(words if mood[row] == 0 else spans[row][int(cuts[row] and len(spans[row]) > 1) :])
    return {
        "textID": hex_ids(rng, count, digits=10),
        "text": texts,
        "selected_text": selected,
        "sentiment": np.array(list(MOODS))[mood].tolist(),
    }


def _texts(
    rng: np.random.RandomState, words: np.ndarray, lengths: np.ndarray, group: np.ndarray | None = None
) -> list[str]:
    """Texts of so many words each; with groups, from the words of the text's group."""
    places = rng.randint(0, words.shape[-1], int(lengths.sum()))
    return joined(words[places] if group is None else words[np.repeat(group, lengths), places], lengths)
