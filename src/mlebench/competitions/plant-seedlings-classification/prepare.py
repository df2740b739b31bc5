from collections.abc import Sequence

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, split_rows

PICTURES = "train/*/*.png"
TEST_SHARE = 0.14


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.files(PICTURES), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, public, private)


def prepare_sides(train: Sequence[RawFile], test: Sequence[RawFile], public: Output, private: Output) -> None:
    answers = Table.from_columns(
        {"file": [image.path.name for image in test], "species": [image.path.parent.name for image in test]}
    )

    public.write("sample_submission.csv", answers.assign(species="Sugar beet"))
    public.place_each((image, image.name) for image in train)
    public.place_each((image, f"test/{image.path.name}") for image in test)
    private.write("answers.csv", answers)
