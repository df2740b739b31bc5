"""Pictures that look alike are on one side (S12), and their order says nothing about their species (L12)."""

from mlebench.kit import Output, Raw, accepts_paths, split_by_likeness

from .prepare import PICTURES, TEST_SHARE, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    pictures = sorted(raw.files(PICTURES), key=lambda picture: picture.path.name)  # not by species
    names = [picture.path.name for picture in pictures]
    train, test = split_by_likeness(pictures, pictures, names, private, test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, public, private)
