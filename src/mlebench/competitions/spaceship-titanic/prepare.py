from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    write_sides(train, test, public, private)


def write_sides(train: Table, test: Table, public: Output, private: Output) -> None:
    public.write("train.csv", train)
    public.write("test.csv", test.drop("Transported"))
    public.write("sample_submission.csv", test.select("PassengerId").assign(Transported=False))
    private.write("test.csv", test)
