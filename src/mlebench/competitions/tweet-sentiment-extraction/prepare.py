from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("selected_text"))
    public.write("sample_submission.csv", test.select("textID").assign(selected_text=""))
    private.write("test.csv", test)
