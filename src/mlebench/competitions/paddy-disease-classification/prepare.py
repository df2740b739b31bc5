from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), train_size=0.75, seed=0)

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.select("image_id").assign(label=""))
    for label, id in zip(train["label"], train["image_id"], strict=True):
        public.place(raw.file(f"train_images/{label}/{id}"), f"train_images/{label}/{id}")
    for label, id in zip(test["label"], test["image_id"], strict=True):
        public.place(raw.file(f"train_images/{label}/{id}"), f"test_images/{id}")
    private.write("test.csv", test)
