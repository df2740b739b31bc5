from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.15, seed=0)

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(attribute_ids="0 1 2"))
    public.place(raw.file("labels.csv"), "labels.csv")
    for folder, part in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{id}.png"), f"{folder}/{id}.png") for id in part["id"])
    private.write("answers.csv", test)
