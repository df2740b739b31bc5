import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    guesses = np.random.default_rng(0).uniform(1, 100, len(test)).round(2)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("Pawpularity"))
    public.write("sample_submission.csv", test.select("Id").assign(Pawpularity=guesses))
    for folder, part in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{id}.jpg"), f"{folder}/{id}.jpg") for id in part["Id"])
    private.write("test.csv", test)
