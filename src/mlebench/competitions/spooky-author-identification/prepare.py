from mlebench.kit import Output, Raw, accepts_paths, one_hot, split_rows

# How often each author occurs in the original training data, as in the original sample submission.
SAMPLE = {"EAP": 0.403493538995863, "HPL": 0.287808366106543, "MWS": 0.308698094897594}


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.archive("train.zip").table("train.csv"), test_size=0.1, seed=0)
    ids = test.select("id")

    public.write("train.csv", train)
    public.write("test.csv", test.drop("author"))
    public.write("sample_submission.csv", ids.assign(SAMPLE))
    private.write("test.csv", ids.assign(one_hot(test["author"], list(SAMPLE))))
