from mlebench.kit import Output, Raw, Table, accepts_paths, split_groups


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train_labels.csv")
    train, test = split_groups(labels, "id", test_size=share_of_test(labels, raw), seed=0)
    prepare_sides(train, test, raw, public, private)


def share_of_test(labels: Table, raw: Raw) -> float:
    """That of the original, whose test images have no labels and serve for nothing else."""
    unlabelled = len(raw.files("test/*.tif"))
    return unlabelled / (len(labels) + unlabelled)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    public.place_each((raw.file(f"train/{id}.tif"), f"train/{id}.tif") for id in train["id"])
    public.place_each((raw.file(f"train/{id}.tif"), f"test/{id}.tif") for id in test["id"])
    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.assign(label=0))
    private.write("answers.csv", test)
