from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TEST_SHARE = 0.19


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    images = raw.archive("train.zip")

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(has_cactus=0.5))
    public.pack("train.zip", {id: images.file(f"train/{id}") for id in train["id"]})
    public.pack("test.zip", {id: images.file(f"train/{id}") for id in test["id"]})
    private.write("test.csv", test)
