from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    public.write("train.csv", train)
    public.write("test.csv", test.drop("diagnosis"))
    public.write("sample_submission.csv", test.assign(diagnosis=0))
    for folder, part in (("train_images", train), ("test_images", test)):
        public.place_each((raw.file(f"train_images/{id}.png"), f"{folder}/{id}.png") for id in part["id_code"])
    private.write("test.csv", test)
