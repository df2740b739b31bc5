"""Sentences cut into tokens, a row for each. The task: say what becomes (`after`) of every token (`before`)."""

from typing import NamedTuple

from mlebench.engine.tables import Table, join_text, renumber
from mlebench.kit.splits import split_groups


class TokenSplit(NamedTuple):
    """The tables of such a task; the sample submission leaves every token unchanged."""

    train: Table
    test: Table
    answers: Table
    sample: Table


def split_tokens(tokens: Table, *, test_size: float, seed: int) -> TokenSplit:
    """Split by whole sentences, renumbered from 0 on either side. A token's id consists of both its numbers."""
    train, test = split_groups(tokens, by="sentence_id", test_size=test_size, seed=seed)
    train, test = (part.assign(sentence_id=renumber(part["sentence_id"])) for part in (train, test))
    answers = test.assign(id=join_text(test["sentence_id"], "_", test["token_id"]))
    return TokenSplit(
        train=train,
        test=test.select("sentence_id", "token_id", "before"),
        answers=answers.select("id", "after"),
        sample=answers.select("id", "before").rename({"before": "after"}),
    )
