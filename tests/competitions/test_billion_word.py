"""The split of the billion words, which draws for many sentences at once, against one that draws for each in turn."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.bytes

prepare = import_module("mlebench.competitions.billion-word-imputation.prepare")


@settings(max_examples=settings().max_examples // 12)
@given(st.integers(0, 2**31), st.integers(1, 3000), st.integers(1, 40), st.booleans())
def test_sentences_and_words_are_those_drawn_one_by_one(seed: int, per_block: int, longest: int, ends: bool) -> None:
    rng = np.random.RandomState(seed)
    lines = [
        " ".join("abcé"[number % 4] * (number % 3 + 1) for number in range(n)) for n in rng.randint(0, longest, 4000)
    ]
    text = "\n".join(lines).encode() + b"\n" * ends
    kept = text.splitlines(keepends=True)
    blocks = [b"".join(kept[start : start + per_block]) for start in range(0, len(kept), per_block)]

    draws, whole, shown, rest = np.random.RandomState(0), [], [], []
    for line in kept:
        words = line.decode().split()
        if draws.uniform() <= 0.01 and len(words) > 2:
            lost = draws.randint(1, len(words) - 1)
            whole.append(" ".join(words))
            shown.append(" ".join(word for place, word in enumerate(words) if place != lost))
        else:
            rest.append(line)
    found = prepare._hold_out(blocks)
    assert (found.whole, found.shown) == (whole, shown)
    assert b"".join(prepare._without(blocks, found.cuts)) == b"".join(rest)
