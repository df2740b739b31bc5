import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_groups


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    test = prepare_pictures(raw, public, private)
    # Quirk of v1: the sample has the row numbers of the original table, in a column without a name.
    sample = Table.from_columns({"": np.asarray(test.rows), "Id": test["id"]}).assign(Category=0)
    public.write("sample_submission.csv", sample)


def prepare_pictures(raw: Raw, public: Output, private: Output) -> Table:
    """Write all but the sample submission; return the rows for testing."""
    images = raw.archive("train_images.zip")
    # No camera is in both the test set and the training set.
    train, test = split_groups(raw.table("train.csv"), "location", test_size=0.1, seed=8)
    answers = test.select("id", "category_id").rename({"id": "Id", "category_id": "Category"})

    public.write("train.csv", train)
    public.write("test.csv", test.drop("category_id"))
    for name, rows in (("train_images.zip", train), ("test_images.zip", test)):
        public.pack(name, {f"{id}.jpg": images.file(f"{id}.jpg") for id in rows["id"]})
    private.write("test.csv", test)
    private.write("answers.csv", answers)
    return test
