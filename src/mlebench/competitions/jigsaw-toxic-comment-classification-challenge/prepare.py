from mlebench.kit import Output, Raw, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # The labels of the test set were published, so nothing is split.
    files = ("train.csv", "test.csv", "test_labels.csv", "sample_submission.csv")
    train, test, labels, sample = (raw.archive(f"{name}.zip").table(name) for name in files)

    public.write("train.csv", train)
    public.write("test.csv", test)
    public.write("sample_submission.csv", sample.assign(dict.fromkeys(sample.columns[1:], 0.5)))
    private.write("test.csv", labels)
