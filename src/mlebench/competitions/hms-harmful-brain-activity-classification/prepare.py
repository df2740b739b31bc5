import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_groups, unique

VOTES = ("seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote")
TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_groups(raw.table("train.csv"), "spectrogram_id", test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    votes = np.column_stack([test[name] for name in VOTES])
    shares = votes / votes.sum(axis=1, keepdims=True)
    gold = test.select("eeg_id").assign(dict(zip(VOTES, shares.T, strict=True)))

    public.write("train.csv", train)
    public.write("test.csv", test.select("spectrogram_id", "eeg_id", "patient_id"))
    public.write("sample_submission.csv", gold.assign(dict.fromkeys(VOTES, 1 / len(VOTES))))
    public.place_tree(raw, "example_figures", "example_figures")
    for part, table in (("train", train), ("test", test)):
        for kind in ("eeg", "spectrogram"):
            names = [f"{kind}s/{id}.parquet" for id in unique(table[f"{kind}_id"])]
            public.place_each((raw.file(f"train_{name}"), f"{part}_{name}") for name in names)
    private.write("test.csv", test)
    private.write("gold_submission.csv", gold)
