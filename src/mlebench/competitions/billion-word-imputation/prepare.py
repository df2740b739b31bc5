from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mlebench.kit import Output, Pieces, Raw, Table

SHARE = 0.01  # of the sentences are for testing
TRAIN, TEST = "train_v2.txt", "test_v2.txt"


class HeldOut(NamedTuple):
    """Sentences for testing, each also without one of its words, and where they stand in each block of the text."""

    whole: list[str]
    shown: list[str]
    cuts: list[list[int]]  # where a sentence begins, where it ends, where the next one begins …


def prepare(raw: Raw, public: Output, private: Output) -> None:
    text = raw.archive(f"{TRAIN}.zip")
    test = _hold_out(text.line_blocks(TRAIN))
    answers = Table.from_columns({"id": np.arange(len(test.whole)), "sentence": test.whole})
    sample = answers.assign(sentence=test.shown)

    rest = Pieces(lambda: _without(text.line_blocks(TRAIN), test.cuts))
    public.pack(f"{TRAIN}.zip", {TRAIN: rest}, deflate=True)
    public.pack(f"{TEST}.zip", {TEST: sample}, deflate=True, quoting="nonnumeric")
    private.write("sample_submission.csv", sample, quoting="nonnumeric")
    private.write("test.csv", answers, quoting="nonnumeric")


def _hold_out(blocks: Iterable[bytes]) -> HeldOut:
    lots, test = _Lots(), HeldOut([], [], [])
    for block in blocks:
        sentences = _Sentences(block)
        cuts = []
        for number, lost in lots.draw(sentences):
            words = sentences[number].split()
            test.whole.append(sentences[number])
            test.shown.append(" ".join(words[:lost] + words[lost + 1 :]))
            cuts += sentences.bounds[number : number + 2]
        test.cuts.append(cuts)
    return test


def _without(blocks: Iterable[bytes], cuts: Iterable[list[int]]) -> Iterator[bytes]:
    for block, here in zip(blocks, cuts, strict=True):
        bounds = [0, *here, len(block)]
        yield b"".join(block[begin:end] for begin, end in zip(bounds[::2], bounds[1::2], strict=True))


class _Sentences:
    """The sentences of a block, which are its lines."""

    def __init__(self, block: bytes):
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + 1
        self.bounds: list[int] = [0, *ends.tolist(), *([] if block.endswith(b"\n") else [len(block)])]
        self._block = block

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> str:
        return self._block[self.bounds[number] : self.bounds[number + 1]].decode("utf-8").strip()


class _Lots:
    """What `RandomState(0)` draws: `uniform()` for each sentence, `randint` for the word that it loses if held out.

    Both come out of one sequence of 32-bit numbers, so what a sentence gets depends on the words of those before it. By
    numpy's rules, which for RandomState never change, two of the sequence make a `uniform()`. A `randint` from 0 to m
    takes one after the other until the last bits of one, as many as m has, make at most m; if m is 0 it takes none.
    """

    def __init__(self) -> None:
        self._rng = np.random.RandomState(0)
        self._left = np.empty(0, dtype=np.uint32)

    def draw(self, sentences: _Sentences) -> Iterator[tuple[int, int]]:
        """The sentences that are held out, and which word each loses: never its first or last."""
        count = len(sentences)
        needed = 2 * count + count // 10 + 1000  # for words far more than ever
        more = self._rng.randint(0, 1 << 32, max(0, needed - len(self._left)), dtype=np.uint32)
        sequence = np.concatenate([self._left, more])
        uniform = ((sequence[:-1] >> 5) * 2.0**26 + (sequence[1:] >> 6)) / 2.0**53  # from every place on
        place = number = 0
        for hit in np.flatnonzero(uniform <= SHARE).tolist():
            passed, odd = divmod(hit - place, 2)
            if hit < place or odd:  # no sentence gets this one
                continue
            if number + passed >= count:
                break
            number, place = number + passed, hit + 2
            most = len(sentences[number].split()) - 3
            if most >= 0:
                lost, place = _whole_number(sequence, place, most)
                yield number, 1 + lost
            number += 1
        self._left = sequence[place + 2 * (count - number) :]


def _whole_number(sequence: np.ndarray, place: int, most: int) -> tuple[int, int]:
    """What is drawn from a place in the sequence on, and where it goes on."""
    bits = (1 << most.bit_length()) - 1
    while most:
        drawn, place = int(sequence[place]) & bits, place + 1
        if drawn <= most:
            return drawn, place
    return 0, place
