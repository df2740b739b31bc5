import numpy as np

from mlebench.kit import Output, Raw, accepts_paths, split_rows

EXAMPLES = 100  # products in the small file to try code on
A_CATEGORY = 1000010653  # what the sample submission says


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.records("train.bson"), test_size=0.1, seed=0)
    train = train.in_file_order()
    answers = test.select("_id", "category_id").sort_by("_id")

    public.write_records("train.bson", train)
    public.write_records("train_example.bson", train.take(np.arange(len(train))[:EXAMPLES]))
    public.write_records("test.bson", test.in_file_order().drop("category_id"))
    public.write("sample_submission.csv", answers.assign(category_id=A_CATEGORY))
    public.place(raw.file("category_names.csv"), "category_names.csv")
    private.write("answers.csv", answers)
