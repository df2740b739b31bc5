import numpy as np

from mlebench.kit.twins import TwinFolder, joined

SHARES = [0.07, 0.27, 0.37, 0.22, 0.06, 0.01]  # of the scores 1 to 6
PLAIN = "the a it is good bad cars car because people can they and so like thing alot driveing becuase teh very to of"
RICH = (
    "consequently, furthermore; pollution, senators évolution landform\xa0\u201cFace\u201d electoral Vauban's car-free"
)
ENDINGS = (". ", ". ", ", ", '." ', "!! ", " \n\n", "\n\n      ", "?\n")


def twin(raw: TwinFolder) -> None:
    """Signal: better essays are longer and have a larger share of rare words."""
    count, later_count = raw.count(200, least=60), 3
    total = count + later_count
    gap = 16**7 // total
    ids = [f"{number:07x}" for number in np.arange(total) * gap + raw.rng.randint(gap, size=total)]
    ids[0], ids[1] = "0000912", "00003e5"  # these could be numbers
    scores = raw.rng.choice(len(SHARES), count, p=SHARES) + 1
    texts = _essays(raw.rng, scores)
    texts[0] = f"\n{texts[0]}"

    later = {"essay_id": ids[count:], "full_text": _essays(raw.rng, np.full(later_count, 3))}
    raw.write_csv("train.csv", {"essay_id": ids[:count], "full_text": texts, "score": scores})
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"essay_id": later["essay_id"], "score": [3] * later_count})


def _essays(rng: np.random.RandomState, scores: np.ndarray) -> list[str]:
    """Sentences of words, with quotation marks, line breaks, trailing blanks and typical mistakes."""
    sentences = 2 + 2 * scores + rng.randint(0, 4, len(scores))
    lengths = rng.randint(3, 16, sentences.sum())
    total, of_word = int(lengths.sum()), np.repeat(np.repeat(scores, sentences), lengths)
    plain, rich = np.array(PLAIN.split()), np.array(RICH.split(" "))
    words = np.where(
        rng.rand(total) < 0.03 * of_word,
        rich[rng.randint(0, len(rich), total)],
        plain[rng.randint(0, len(plain), total)],
    )
    endings = rng.choice(ENDINGS, len(lengths))
    written = [f"{said.capitalize()}{ending}" for said, ending in zip(joined(words, lengths), endings, strict=True)]
    return joined(written, sentences, sep="")
