"""Where a word is missing cannot be computed from a published seed (L13)."""

from mlebench.kit import Output, Raw, accepts_paths, secret_random

from .prepare import HeldOut, prepare_sentences, without_word


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sentences(_without_a_secret_word, raw, public, private)


def _without_a_secret_word(test: HeldOut) -> list[str]:
    """Never the first or last; the draws depend on all sentences, of which agents see none whole."""
    rng = secret_random(test.whole)
    sentences = (sentence.split() for sentence in test.whole)
    return [without_word(words, rng.randrange(1, len(words) - 1)) for words in sentences]
