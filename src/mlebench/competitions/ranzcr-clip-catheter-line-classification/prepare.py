from collections.abc import Collection

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

# Quirk of v1: the original asked for the first two as well.
NOT_PREDICTED = ("CVC - Normal", "Swan Ganz Catheter Present", "PatientID")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    prepare_sides(train, test, NOT_PREDICTED, raw, public, private)


def prepare_sides(
    train: Table, test: Table, not_predicted: Collection[str], raw: Raw, public: Output, private: Output
) -> None:
    sample = test.drop(*not_predicted)
    lines = raw.table("train_annotations.csv").where_in("StudyInstanceUID", train["StudyInstanceUID"])

    public.write("train.csv", train)
    public.write("train_annotations.csv", lines)
    public.write("sample_submission.csv", sample.assign(dict.fromkeys(sample.columns[1:], 0)))
    for folder, part in (("train", train), ("test", test)):
        names = [f"{id}.jpg" for id in part["StudyInstanceUID"]]
        public.place_each((raw.file(f"train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", test)
