from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TRAIN_SHARE = 0.75


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), train_size=TRAIN_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)
    public.write("sample_submission.csv", test.select("image_id").assign(label=""))


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    """Everything but the sample submission."""
    public.write("train.csv", train)
    for label, id in zip(train["label"], train["image_id"], strict=True):
        public.place(raw.file(f"train_images/{label}/{id}"), f"train_images/{label}/{id}")
    for label, id in zip(test["label"], test["image_id"], strict=True):
        public.place(raw.file(f"train_images/{label}/{id}"), f"test_images/{id}")
    private.write("test.csv", test)
