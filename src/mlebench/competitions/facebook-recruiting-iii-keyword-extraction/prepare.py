from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    questions = raw.archive("Train.zip").table("Train.csv", dtype={"Id": str, "Tags": str})
    train, test = split_rows(questions, test_size=0.1, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("Tags"))
    public.write("sample_submission.csv", test.assign(Tags="javascript c# python php java"))
    private.write("test.csv", test)
