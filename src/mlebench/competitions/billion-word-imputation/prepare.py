from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from mlebench.kit import ByteChunks, Output, Raw, Table, accepts_paths

SHARE = 0.01  # of the sentences are for testing
TRAIN, TEST = "train_v2.txt", "test_v2.txt"


class HeldOut(NamedTuple):
    """Sentences for testing, each also without one of its words, and where they are in each block of the text."""

    whole: list[str]
    shown: list[str]
    cuts: list[list[int]]  # where a sentence begins, where it ends, where the next one begins …


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sentences(attrgetter("shown"), raw, public, private)


def prepare_sentences(shown_of: Callable[[HeldOut], list[str]], raw: Raw, public: Output, private: Output) -> None:
    """Prepare the sentences; `shown_of` gives those for testing, each without a word."""
    text = raw.archive(f"{TRAIN}.zip")
    test = _hold_out(text.line_blocks(TRAIN))
    answers = Table.from_columns({"id": np.arange(len(test.whole)), "sentence": test.whole})
    sample = answers.assign(sentence=shown_of(test))

    rest = ByteChunks(lambda: _without(text.line_blocks(TRAIN), test.cuts))
    public.pack(f"{TRAIN}.zip", {TRAIN: rest}, deflate=True)
    public.pack(f"{TEST}.zip", {TEST: sample}, deflate=True, quoting="nonnumeric")
    private.write("sample_submission.csv", sample, quoting="nonnumeric")
    private.write("test.csv", answers, quoting="nonnumeric")


def _hold_out(blocks: Iterable[bytes]) -> HeldOut:
    """One draw for each sentence; a second, for one held out, picks the word it loses: never the first or last."""
    rng, test = np.random.RandomState(0), HeldOut([], [], [])
    for block in blocks:
        cuts, end = [], 0
        for line in block.splitlines(keepends=True):
            begin, end = end, end + len(line)
            if rng.random_sample() > SHARE:
                continue
            sentence = line.decode("utf-8").strip()
            words = sentence.split()
            if len(words) > 2:
                lost = rng.randint(1, len(words) - 1)
                test.whole.append(sentence)
                test.shown.append(without_word(words, lost))
                cuts += [begin, end]
        test.cuts.append(cuts)
    return test


def without_word(words: list[str], lost: int) -> str:
    return " ".join(words[:lost] + words[lost + 1 :])


def _without(blocks: Iterable[bytes], cuts: Iterable[list[int]]) -> Iterator[bytes]:
    for block, here in zip(blocks, cuts, strict=True):
        bounds = [0, *here, len(block)]
        yield b"".join(block[begin:end] for begin, end in zip(bounds[::2], bounds[1::2], strict=True))
