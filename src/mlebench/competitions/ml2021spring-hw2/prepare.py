import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

FOLDER = "timit_11/timit_11"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    frames = frames_of(raw)
    train, test = split_rows(np.arange(len(frames)), test_size=test_share(raw), seed=0)
    write_parts(train, test, raw, public, private)


def frames_of(raw: Raw) -> np.ndarray:
    return raw.array(f"{FOLDER}/train_11.npy")


def test_share(raw: Raw) -> float:
    """The original's share of unlabelled frames."""
    unlabelled = len(raw.array(f"{FOLDER}/test_11.npy"))
    return unlabelled / (len(frames_of(raw)) + unlabelled)


def write_parts(train: np.ndarray, test: np.ndarray, raw: Raw, public: Output, private: Output) -> None:
    """Write the frames with these numbers."""
    frames, labels = frames_of(raw), raw.array(f"{FOLDER}/train_label_11.npy")
    answers = Table.from_columns({"Id": np.arange(len(test)), "ClassId": labels[test].astype(object)})

    public.write_array(f"{FOLDER}/train_11.npy", frames, train)
    public.write_array(f"{FOLDER}/train_label_11.npy", labels, train)
    public.write_array(f"{FOLDER}/test_11.npy", frames, test)
    public.write("sampleSubmission.csv", answers.assign(ClassId=0))
    private.write("answers.csv", answers)
