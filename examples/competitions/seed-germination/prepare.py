from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("seeds.csv"), test_size=0.2, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("germinated"))
    public.write("sample_submission.csv", test.select("seed_id").assign(germinated=0.5))
    private.write("answers.csv", test.select("seed_id", "germinated"))
