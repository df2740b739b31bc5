import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

FOLDER = "timit_11/timit_11"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    frames, labels = raw.array(f"{FOLDER}/train_11.npy"), raw.array(f"{FOLDER}/train_label_11.npy")
    unlabelled = len(raw.array(f"{FOLDER}/test_11.npy"))
    test_share = unlabelled / (len(frames) + unlabelled)  # the original's
    train, test = split_rows(np.arange(len(frames)), test_size=test_share, seed=0)
    answers = Table.from_columns({"Id": np.arange(len(test)), "ClassId": labels[test].astype(object)})

    public.write_array(f"{FOLDER}/train_11.npy", frames, train)
    public.write_array(f"{FOLDER}/train_label_11.npy", labels, train)
    public.write_array(f"{FOLDER}/test_11.npy", frames, test)
    public.write("sampleSubmission.csv", answers.assign(ClassId=0))
    private.write("answers.csv", answers)
