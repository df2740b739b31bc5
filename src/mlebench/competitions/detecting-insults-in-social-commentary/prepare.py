from mlebench.kit import Output, Raw, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # The labels of the test set were published, so nothing is split. The later verification set is left out.
    gold = raw.table("test_with_solutions.csv").select("Insult", "Date", "Comment")

    public.place(raw.file("train.csv"), "train.csv")
    public.write("test.csv", gold.drop("Insult"))
    public.write("sample_submission_null.csv", gold.assign(Insult=0))
    private.place(raw.file("test_with_solutions.csv"), "test.csv")
    private.write("gold_submission.csv", gold)
