from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train_labels.csv", dtype={"BraTS21ID": str})  # ids are folders' names, with leading zeros
    train, test = split_rows(labels, test_size=0.1, seed=0)

    for folder, patients in (("train", train), ("test", test)):
        for id in patients["BraTS21ID"]:
            public.place_tree(raw, f"train/{id}", f"{folder}/{id}")
    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.assign(MGMT_value=0.5))
    private.write("test.csv", test)
