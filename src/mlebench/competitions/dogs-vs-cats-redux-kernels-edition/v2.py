"""The numbers of test pictures say nothing about the raw files, which are sorted: cats first (L12)."""

from mlebench.kit import Output, Raw, accepts_paths, secret_order

from .prepare import prepare_sides, split_pictures


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_pictures(raw)
    prepare_sides(train, [test[row] for row in secret_order(test)], public, private)
