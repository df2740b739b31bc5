from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("fish.csv"), test_size=0.2, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("weight_g"))
    public.write("sample_submission.csv", test.select("fish_id").assign(weight_g=250.0))
    private.write("answers.csv", test.select("fish_id", "weight_g"))
