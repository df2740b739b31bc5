from mlebench.kit import Output, Raw, accepts_paths, split_rows

COUPONS = "GCP-Coupons-Instructions.rtf"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # As many rows as the original test set had, out of 55 million.
    train, test = split_rows(raw.table("train.csv"), test_size=raw.scaled(9914), seed=0)

    public.write("labels.csv", train)  # the published name of the training rows
    public.write("test.csv", test.drop("fare_amount"))
    public.write("sample_submission.csv", test.select("key").assign(fare_amount=11.35))
    public.place(raw.file(COUPONS), COUPONS)
    private.write("test.csv", test)
