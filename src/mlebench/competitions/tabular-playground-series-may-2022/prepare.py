import numpy as np

from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=raw.scaled(100_000), seed=0)
    # Rows get new ids, train first.
    train = train.assign(id=np.arange(len(train)))
    test = test.assign(id=np.arange(len(train), len(train) + len(test)))

    public.write("train.csv", train)
    public.write("test.csv", test.drop("target"))
    public.write("sample_submission.csv", test.select("id").assign(target=0.5))
    private.write("gold_submission.csv", test.select("id", "target"))
    private.write("test.csv", test)
