from collections.abc import Iterator

import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, pieces_of

PIECE = 200_000  # sentences made in one go

# A sentence picks from each of these in turn; the choice from the second restricts the third.
STARTS = ("The mayor", "Ms. Ünal", '" We', "A spokesman", "It", "Bjørk 's brother", "In 2009 , she", "``Nobody''")
VERBS = ("drank", "read", "drove", "played", "sold", "wrote")
OBJECTS = {
    "drank": ("tea", "coffee", "a glass of water"),
    "read": ("the paper", "a book of 1,200 pages", '" Emma "'),
    "drove": ("the old car", "a bus", "home"),
    "played": ("chess", "the violin", "for F.C. København"),
    "sold": ("€ 3.5 million of bonds", "the house", "2 1 / 2 acres"),
    "wrote": ("a letter", "to the editor", "code"),
}
ENDS = (
    "on Tuesday",
    "in the rain , he said",
    "for the first\u00a0time in years",
    "( again )",
    'and said : " Enough "',
    "— and then some more",
)
SHORT = ("Hello .", "Yes", "3", ". . .", "None", "Read more :", "")


def twin(raw: TwinFolder) -> None:
    """Signal: the verb determines what comes after it, and few words can follow an object or precede the full stop."""
    raw.write_zip("train_v2.txt.zip", {"train_v2.txt": _train(raw.rng, raw.count(20_000, least=8000))})

    later = [" ".join(words[:3] + words[4:]) for words in map(str.split, _sentences(raw.rng, raw.count(20)))]
    columns = {"id": np.arange(1, len(later) + 1), "sentence": later}
    raw.write_zip("test_v2.txt.zip", {"test_v2.txt": csv_bytes(columns, quote_text=True)})


def _train(rng: np.random.RandomState, count: int) -> Iterator[bytes]:
    sizes = pieces_of(count, PIECE)
    for place, size in enumerate(sizes, 1):
        lines = _sentences(rng, size)
        short = rng.randint(0, size, size // 20)
        for line, text in zip(short.tolist(), rng.choice(SHORT, len(short)).tolist(), strict=True):
            lines[line] = text
        yield "\n".join([*lines, "One  more  , with\ttabs .\n" if place == len(sizes) else ""]).encode("utf-8")


def _sentences(rng: np.random.RandomState, count: int) -> list[str]:
    verbs = rng.randint(0, len(VERBS), count)
    objects = np.array([OBJECTS[verb] for verb in VERBS])[verbs, rng.randint(0, 3, count)]
    parts = (rng.choice(STARTS, count), np.array(VERBS)[verbs], objects, rng.choice(ENDS, count))
    return [f"{' '.join(words)} ." for words in zip(*(part.tolist() for part in parts), strict=True)]
