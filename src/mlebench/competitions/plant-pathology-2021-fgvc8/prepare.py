from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TEST_SHARE = 0.2


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(labels="healthy"))
    for folder, part in (("train_images", train), ("test_images", test)):
        public.place_each((raw.file(f"train_images/{name}"), f"{folder}/{name}") for name in part["image"])
    private.write("answers.csv", test)
