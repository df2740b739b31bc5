from mlebench.kit import Output, Raw, accepts_paths, split_groups


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train_labels.csv")
    # The original test images have no labels; they only determine the size of the test set.
    unlabelled = len(raw.files("test/*.tif"))
    train, test = split_groups(labels, "id", test_size=unlabelled / (len(labels) + unlabelled), seed=0)

    public.place_each((raw.file(f"train/{id}.tif"), f"train/{id}.tif") for id in train["id"])
    public.place_each((raw.file(f"train/{id}.tif"), f"test/{id}.tif") for id in test["id"])
    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.assign(label=0))
    private.write("answers.csv", test)
