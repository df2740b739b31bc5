import numpy as np

from mlebench.kit.twins import TwinFolder, random_hex

# Label: how often it is set, and what such a comment says.
LABELS = {
    "toxic": (0.1, "stop being so stupid"),
    "severe_toxic": (0.01, "you worthless piece of garbage, get lost"),
    "obscene": (0.05, "what a load of crap"),
    "threat": (0.01, "I will find you and hurt you"),
    "insult": (0.05, "you are a moron"),
    "identity_hate": (0.01, "people like you should leave this country"),
}
PLAIN = (
    "Thanks for the edit",
    "please cite a source, e.g. the 1911 census",
    '"Good faith" applies here',
    "== Deletion ==\n\nSee the talk page.",
    "I moved the page\r\nand fixed the links",
    "naïve Übersetzung — 東京 ☺",
    "what's   the policy?\ttoo long",
    " 89.205.38.27 ",
)
WHOLE = ("NA", "null", "", "nan", "N/A", " ", '"', "007")  # comments that readers of CSV may take for something else
CORNER_IDS = ("0000000000000123", "00001e0000000045")  # all digits, and what could be a float


def twin(raw: TwinFolder) -> None:
    """Signal: each label comes with its own rude phrase, which few other comments have."""
    train, later = raw.count(400, least=60), raw.count(240, least=60)
    ids = [*CORNER_IDS, *random_hex(raw.rng, train + later - len(CORNER_IDS), digits=16)]
    flags = _flags(raw.rng, train)
    columns = {"id": sorted(ids[:train]), "comment_text": _comments(raw.rng, flags)}
    raw.write_zipped_csv("train.csv", columns | dict(zip(LABELS, flags.T, strict=True)), quote_text=True)

    counting, ignored = np.split(raw.rng.permutation(later), [later * 2 // 5])
    ids, flags = sorted(ids[train:]), _flags(raw.rng, later)
    flags[counting[: len(LABELS)]] = np.eye(len(LABELS))  # so that every label occurs
    raw.write_zipped_csv("test.csv", {"id": ids, "comment_text": _comments(raw.rng, flags)})
    flags[ignored] = -1  # as in the original, where more than half do not count
    raw.write_zipped_csv("test_labels.csv", {"id": ids, **dict(zip(LABELS, flags.T, strict=True))})
    raw.write_zipped_csv("sample_submission.csv", {"id": ids, **{name: [0.5] * later for name in LABELS}})


def _flags(rng: np.random.RandomState, count: int) -> np.ndarray:
    return (rng.rand(count, len(LABELS)) < [share for share, _ in LABELS.values()]).astype(int)


def _comments(rng: np.random.RandomState, flags: np.ndarray) -> list[str]:
    phrases = [phrase for _, phrase in LABELS.values()]
    noise = rng.rand(*flags.shape) < 0.005
    opening, whole = rng.choice(PLAIN, len(flags)).tolist(), rng.choice(WHOLE, len(flags)).tolist()
    comments = []
    for row, (said, odd) in enumerate(zip(flags | noise, rng.rand(len(flags)) < 0.03, strict=True)):
        rude = [phrases[place] for place in np.flatnonzero(said)]
        comments.append(whole[row] if odd and not rude else ". ".join([opening[row], *rude]))
    return comments
