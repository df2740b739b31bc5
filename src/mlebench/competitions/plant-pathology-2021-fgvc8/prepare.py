from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.2, seed=0)

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(labels="healthy"))
    for folder, part in (("train_images", train), ("test_images", test)):
        public.place_each((raw.file(f"train_images/{name}"), f"{folder}/{name}") for name in part["image"])
    private.write("answers.csv", test)
