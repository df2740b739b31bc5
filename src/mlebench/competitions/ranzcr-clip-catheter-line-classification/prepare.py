from mlebench.kit import Output, Raw, accepts_paths, split_rows

# Quirk of v1: the original asked for the first two as well.
NOT_PREDICTED = ("CVC - Normal", "Swan Ganz Catheter Present", "PatientID")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    sample = test.drop(*NOT_PREDICTED)
    lines = raw.table("train_annotations.csv").where_in("StudyInstanceUID", train["StudyInstanceUID"])

    public.write("train.csv", train)
    public.write("train_annotations.csv", lines)
    public.write("sample_submission.csv", sample.assign(dict.fromkeys(sample.columns[1:], 0)))
    for folder, part in (("train", train), ("test", test)):
        names = [f"{id}.jpg" for id in part["StudyInstanceUID"]]
        public.place_each((raw.file(f"train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", test)
