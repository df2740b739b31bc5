"""Passengers who travelled together are on one side, as in the original (S15)."""

from mlebench.kit import Output, Raw, accepts_paths, split_whole_groups

from .prepare import write_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    passengers = raw.table("train.csv")
    groups = [id.partition("_")[0] for id in passengers["PassengerId"].tolist()]
    train, test = split_whole_groups(passengers, groups, test_size=0.1, seed=0)
    write_sides(train, test, public, private)
