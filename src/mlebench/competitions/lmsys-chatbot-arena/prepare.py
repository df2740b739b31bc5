from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

THIRD = 1 / 3


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    write_parts(*split_rows(raw.table("train.csv"), test_size=0.1, seed=0), public, private)


def write_parts(train: Table, test: Table, public: Output, private: Output) -> None:
    sample = test.select("id").assign(winner_model_a=THIRD, winner_model_b=THIRD, winner_tie=THIRD)

    public.write("train.csv", train)
    public.write("test.csv", test.select("id", "prompt", "response_a", "response_b"))
    public.write("sample_submission.csv", sample)
    private.write("answers.csv", test)
