import json

import numpy as np

from mlebench.kit.twins import TwinFolder, joined

MODELS = ("gpt-4-1106-preview", "claude-2.1", "llama-2-13b-chat", "mixtral-8x7b-instruct-v0.1", "koala-13b")
OUTCOMES = ("winner_model_a", "winner_model_b", "winner_tie")
WORDS = (
    'the a of "quoted" and, is: to? in/out I\'m naïve 你好 Straße `code` x=1; '
    "\n\n \t - 3.14 C:\\dir null None NaN 🙂 \ud83d"  # at the end half an emoji
)


def twin(raw: TwinFolder) -> None:
    """Signal: the answer with more words mostly wins; if both are about equally long it is mostly a tie."""
    votes = _votes(raw.rng, raw.count(500, least=80))
    raw.write_csv("train.csv", votes)

    later = _votes(raw.rng, 3)  # the original shows three rows of a hidden file
    raw.write_csv("test.csv", {name: later[name] for name in ("id", "prompt", "response_a", "response_b")})
    raw.write_csv("sample_submission.csv", {"id": later["id"], **{name: [1 / 3] * 3 for name in OUTCOMES}})


def _votes(rng: np.random.RandomState, count: int) -> dict[str, list | np.ndarray]:
    first = rng.randint(0, len(MODELS), count)
    second = (first + rng.randint(1, len(MODELS), count)) % len(MODELS)
    turns = 1 + (rng.rand(count) < 0.15) + (rng.rand(count) < 0.05)
    lengths = rng.randint(1, 25, (2, count))
    gap = lengths[0] - lengths[1]
    winner = np.where(np.abs(gap) < 5, 2, (gap < 0).astype(int))
    winner = np.where(rng.rand(count) < 0.25, rng.randint(0, 3, count), winner)
    return {
        "id": np.cumsum(rng.randint(1, 2**33 // count, count)),  # up to about 2**32, as in the original
        "model_a": np.array(MODELS)[first],
        "model_b": np.array(MODELS)[second],
        "prompt": _conversations(rng, turns, rng.randint(1, 8, count)),
        "response_a": _conversations(rng, turns, lengths[0], silent=0.02),
        "response_b": _conversations(rng, turns, lengths[1], silent=0.02),
        **{name: (winner == place).astype(int) for place, name in enumerate(OUTCOMES)},
    }


def _conversations(rng: np.random.RandomState, turns: np.ndarray, lengths: np.ndarray, silent: float = 0) -> list[str]:
    """For each row a JSON list with a text for each turn; a model that said nothing is null there."""
    count = np.repeat(lengths, turns)
    vocabulary = np.array(WORDS.split(" "))
    texts = joined(vocabulary[rng.randint(0, len(vocabulary), count.sum())], count)
    said = [None if nothing else text for text, nothing in zip(texts, rng.rand(len(texts)) < silent, strict=True)]
    ends = np.cumsum(turns).tolist()
    return [_json(said[end - number : end]) for end, number in zip(ends, turns.tolist(), strict=True)]


def _json(texts: list[str | None]) -> str:
    """As the original prints it: letters of all scripts as they are, half an emoji escaped, slashes escaped."""
    text = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).replace("/", "\\/")
    return text.replace("\ud83d", "\\ud83d")
