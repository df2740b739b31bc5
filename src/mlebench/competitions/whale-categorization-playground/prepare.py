import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, is_in, renumber, split_rows

SAMPLE = "new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46"
TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train.csv")
    prepare_sides(labels, rows_for_test(renumber(labels["Id"])), raw, public, private)


def prepare_sides(labels: Table, in_test: np.ndarray, raw: Raw, public: Output, private: Output) -> None:
    train, test = labels.where(~in_test), labels.where(in_test)
    known = is_in(test["Id"], train["Id"])
    answers = test.assign(Id=np.where(known, test["Id"], "new_whale"))

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(Id=SAMPLE))
    for folder, images in (("train", train["Image"]), ("test", test["Image"])):
        public.place_each((raw.file(f"train/{image}"), f"{folder}/{image}") for image in images)
    private.write("test.csv", answers)


def rows_for_test(whales: np.ndarray) -> np.ndarray:
    """A mask of the rows to test, where whales are numbered as they first appear.

    A whale with several images has at least one on each side; a whale's only image goes to a random side.
    """
    sizes = np.bincount(whales)
    by_whale = np.split(np.argsort(whales, kind="stable"), np.cumsum(sizes)[:-1])
    single = np.concatenate([rows for rows in by_whale if len(rows) == 1])
    pairs = np.array([_one_for_each_side(rows) for rows in by_whale if len(rows) > 1])
    decided = np.zeros(len(whales), dtype=bool)
    decided[single] = decided[pairs] = True
    _, rest = split_rows(np.flatnonzero(~decided), test_size=TEST_SHARE, seed=0)

    in_test = np.zeros(len(whales), dtype=bool)
    in_test[single] = np.random.default_rng(0).random(len(single)) >= 1 - TEST_SHARE
    in_test[pairs[:, 1]] = in_test[rest] = True
    return in_test


def _one_for_each_side(rows: np.ndarray) -> np.ndarray:
    """One row to train and one to test; the same places for all whales with the same number of images."""
    return rows[np.random.RandomState(0).permutation(len(rows))[:2]]
