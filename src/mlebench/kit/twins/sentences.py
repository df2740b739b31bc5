"""Twins of sentences cut into tokens, a row for each; `mlebench.kit.tokens` says what such a task is."""

from collections.abc import Sequence

import numpy as np

from mlebench.kit.twins.folder import TwinFolder

Token = tuple[str, str, str]  # class, before, after
Kinds = Sequence[tuple[float, Sequence[Token]]]  # how often a kind of token occurs, and its tokens


def write_token_twin(raw: TwinFolder, prefix: str, kinds: Kinds) -> None:
    """Raw files of such a task, each a CSV file in a zip. There are tests for two stages; the second is named `_2`."""
    train = random_sentences(raw.rng, raw.count(300, least=30), kinds)
    raw.write_zipped_csv(f"{prefix}_train.csv", train, quote_text=True)
    for suffix, count in (("", 30), ("_2", 40)):
        test = random_sentences(raw.rng, raw.count(count), kinds)
        del test["class"], test["after"]
        raw.write_zipped_csv(f"{prefix}_test{suffix}.csv", test, quote_text=True)
        ids = [f"{sentence}_{token}" for sentence, token in zip(test["sentence_id"], test["token_id"], strict=True)]
        sample = {"id": ids, "after": test["before"]}
        raw.write_zipped_csv(f"{prefix}_sample_submission{suffix}.csv", sample, quote_text=True)


def random_sentences(rng: np.random.RandomState, count: int, kinds: Kinds) -> dict[str, list]:
    """Columns of tokens: first a kind is drawn by weight, then a token of it. A full stop ends each sentence."""
    lengths = rng.randint(4, 20, count)
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    weights = np.cumsum([weight for weight, _ in kinds])
    kind = np.searchsorted(weights / weights[-1], rng.rand(total), side="right")
    sizes = np.array([len(tokens) for _, tokens in kinds])
    token = (np.cumsum(sizes) - sizes)[kind] + (rng.rand(total) * sizes[kind]).astype(int)
    tokens = [*(token for _, words in kinds for token in words), ("PUNCT", ".", ".")]
    token[ends - 1] = len(tokens) - 1
    columns: dict[str, list] = {
        "sentence_id": np.repeat(np.arange(count), lengths).tolist(),
        "token_id": (np.arange(total) - np.repeat(ends - lengths, lengths)).tolist(),
    }
    for column, name in enumerate(("class", "before", "after")):
        columns[name] = np.array([cells[column] for cells in tokens], dtype=object)[token].tolist()
    return columns
