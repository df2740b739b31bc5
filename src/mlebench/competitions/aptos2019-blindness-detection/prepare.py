from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("diagnosis"))
    public.write("sample_submission.csv", test.assign(diagnosis=0))
    for folder, part in (("train_images", train), ("test_images", test)):
        public.place_each((raw.file(f"train_images/{id}.png"), f"{folder}/{id}.png") for id in part["id_code"])
    private.write("test.csv", test)
