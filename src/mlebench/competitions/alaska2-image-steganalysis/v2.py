"""Which version of a test picture is shown cannot be computed from a published seed (L13)."""

from mlebench.kit import Output, Raw, accepts_paths, secret_random

from .prepare import VERSIONS, prepare_sides, split_covers


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_covers(raw)
    # The sizes of all versions; of each picture, agents see one.
    rng = secret_random(raw.file(f"{folder}/{name}").size for name in test for folder in VERSIONS)
    prepare_sides(train, test, rng, raw, public, private)
