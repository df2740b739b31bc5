from mlebench.kit import Output, Raw, accepts_paths, split_tokens


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    tokens = raw.archive("ru_train.csv.zip").table("ru_train.csv")
    train, test, answers, sample = split_tokens(tokens, test_size=0.1, seed=0)

    for name, table in {"ru_train.csv": train, "ru_test_2.csv": test, "ru_sample_submission_2.csv": sample}.items():
        public.pack(f"{name}.zip", {name: table}, quoting="nonnumeric")
    private.write("answers.csv", answers, quoting="nonnumeric")
    private.write("sample_submission.csv", sample, quoting="nonnumeric")
