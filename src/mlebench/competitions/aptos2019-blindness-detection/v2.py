"""Pictures of one eye that look alike are on one side (S11); kappa counts unused grades (G24), is never NaN (G19)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, groups_of_pictures, split_whole_groups
from mlebench.metrics import quadratic_weighted_kappa

from .prepare import TEST_SHARE, prepare_sides

BITS = 2  # of 64, in which hashes of a picture and of a smaller or recoded copy may differ


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    groups = groups_of_pictures([raw.file(f"train_images/{id}.png") for id in rows["id_code"]], distance=BITS)
    rows = rows.assign(group=groups)
    train, test = split_whole_groups(rows, groups, test_size=TEST_SHARE, seed=0)
    prepare_sides(train.drop("group"), test.drop("group"), raw, public, private)
    private.write("groups.csv", test.select("id_code", "group").rename({"id_code": "id"}))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id_code", target="diagnosis", values="integers")
    return quadratic_weighted_kappa(y_true, y_pred, by_value=True)
