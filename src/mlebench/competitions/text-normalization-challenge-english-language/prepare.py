from mlebench.kit import Output, Raw, join_text, renumber, split_groups


def prepare(raw: Raw, public: Output, private: Output) -> None:
    tokens = raw.archive("en_train.csv.zip").table("en_train.csv")
    train, test = split_groups(tokens, by="sentence_id", test_size=0.1, seed=0)
    train, test = (part.assign(sentence_id=renumber(part["sentence_id"])) for part in (train, test))
    answers = test.assign(id=join_text(test["sentence_id"], "_", test["token_id"]))
    sample = answers.select("id", "before").rename({"before": "after"})
    test = test.drop("class", "after")

    public.pack("en_train.csv.zip", {"en_train.csv": train}, quoting="nonnumeric")
    public.pack("en_test_2.csv.zip", {"en_test_2.csv": test}, quoting="nonnumeric")
    public.pack("en_sample_submission_2.csv.zip", {"en_sample_submission_2.csv": sample}, quoting="nonnumeric")
    private.write("answers.csv", answers.select("id", "after"), quoting="nonnumeric")
    private.write("sample_submission.csv", sample, quoting="nonnumeric")
