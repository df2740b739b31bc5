"""Tasks on tokens: sentences stay whole, and what a token becomes is known only for training rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.kit import Table, open_raw, split_tokens
from mlebench.kit.twins import TwinFolder, write_token_twin
from mlebench.kit.twins.sentences import random_sentences

pytestmark = pytest.mark.bytes

KINDS = [(9.0, [("PLAIN", "a", "a"), ("PLAIN", "b", "b")]), (1.0, [("CARDINAL", "1", "one")])]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=12), st.integers(0, 9))
def test_sentences_stay_whole_and_are_renumbered(lengths: list[int], seed: int) -> None:
    sentences = np.repeat(np.arange(len(lengths)) * 7 + 3, lengths)
    words = [f"word {row}" for row in range(len(sentences))]
    tokens = Table.from_columns(
        {
            "sentence_id": sentences,
            "token_id": [token for length in lengths for token in range(length)],
            "class": ["PLAIN"] * len(words),
            "before": words,
            "after": [word.upper() for word in words],
        }
    )
    train, test, answers, sample = split_tokens(tokens, test_size=0.5, seed=seed)

    assert train.columns == tokens.columns
    assert test.columns == ["sentence_id", "token_id", "before"]
    assert answers.columns == sample.columns == ["id", "after"]
    parts = [[*part["before"]] for part in (train, test)]
    assert sorted([*parts[0], *parts[1]], key=words.index) == words
    sentence_of = dict(zip(words, sentences.tolist(), strict=True))
    assert not {sentence_of[word] for word in parts[0]} & {sentence_of[word] for word in parts[1]}
    for part, kept in zip((train, test), parts, strict=True):
        assert kept == sorted(kept, key=words.index), "in the order of the file"
        old = [sentence_of[word] for word in kept]
        assert part["sentence_id"].tolist() == [sorted(set(old)).index(number) for number in old]
    numbers = zip(test["sentence_id"], test["token_id"], strict=True)
    assert answers["id"].tolist() == sample["id"].tolist() == [f"{one}_{two}" for one, two in numbers]
    assert answers["after"].tolist() == [word.upper() for word in parts[1]]
    assert sample["after"].tolist() == parts[1]


def test_random_sentences_draw_kinds_by_weight_and_end_with_a_full_stop() -> None:
    made = random_sentences(np.random.RandomState(0), 500, KINDS)
    token, last = made["token_id"], [*(number == 0 for number in made["token_id"][1:]), True]
    assert sorted(set(made["sentence_id"])) == list(range(500))
    assert all(number == 0 or number == token[row - 1] + 1 for row, number in enumerate(token))
    assert [word == "." for word in made["before"]] == last
    drawn = [kind for kind, end in zip(made["class"], last, strict=True) if not end]
    assert drawn.count("CARDINAL") / len(drawn) == pytest.approx(0.1, abs=0.02)


def test_a_twin_has_two_stages_of_tests_and_can_be_split(tmp_path: Path) -> None:
    write_token_twin(TwinFolder(tmp_path), "xx", KINDS)
    names = ["xx_sample_submission", "xx_sample_submission_2", "xx_test", "xx_test_2", "xx_train"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.csv.zip" for name in names)
    with open_raw(tmp_path) as raw:
        tables = {name: raw.archive(f"{name}.csv.zip").table(f"{name}.csv") for name in names}
        assert len(split_tokens(tables["xx_train"], test_size=0.1, seed=0).test) > 0
        for stage in ("", "_2"):
            test, sample = tables[f"xx_test{stage}"], tables[f"xx_sample_submission{stage}"]
            assert test.columns == ["sentence_id", "token_id", "before"]
            assert test["before"].tolist() == sample["after"].tolist()
