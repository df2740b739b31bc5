from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_labels(raw, public, private)
    # Quirk of v1: only the folders are packed, not the photos in them. The published archives name the folder by its
    # full path on the machine that made them, which we cannot and should not reproduce.
    for side in ("train", "test"):
        public.pack(f"{side}.7z", {f"{side}/": b""})


def prepare_labels(raw: Raw, public: Output, private: Output) -> tuple[Table, Table]:
    """Write all but the photos; return the labels of those for training and of those for testing."""
    labels = raw.archive("train_labels.csv.zip").table("train_labels.csv")
    train, test = split_rows(labels, test_size=0.2, seed=0)
    sample = test.assign(invasive=0.5)

    public.pack("train_labels.csv.zip", {"train_labels.csv": train})
    public.pack("sample_submission.csv.zip", {"sample_submission.csv": sample})
    private.write("answers.csv", test)
    private.write("sample_submission.csv", sample)
    return train, test
