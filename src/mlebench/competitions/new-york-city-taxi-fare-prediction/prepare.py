from mlebench.kit import Output, Raw, accepts_paths, split_rows

COUPONS = "GCP-Coupons-Instructions.rtf"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_as("labels.csv", raw, public, private)


def prepare_as(train_name: str, raw: Raw, public: Output, private: Output) -> None:
    """Prepare the rides, with those for training in a file of this name."""
    # As many rows as the original test set had, out of 55 million.
    train, test = split_rows(raw.table("train.csv"), test_size=raw.scaled(9914), seed=0)

    public.write(train_name, train)
    public.write("test.csv", test.drop("fare_amount"))
    public.write("sample_submission.csv", test.select("key").assign(fare_amount=11.35))
    public.place(raw.file(COUPONS), COUPONS)
    private.write("test.csv", test)
