from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    answers = test.select("id", "answer_text").rename({"answer_text": "PredictionString"})

    public.write("train.csv", train)
    public.write("test.csv", test.drop("answer_start", "answer_text"))
    public.write("sample_submission.csv", answers.assign(PredictionString="dummy text"))
    private.write("test.csv", answers)
