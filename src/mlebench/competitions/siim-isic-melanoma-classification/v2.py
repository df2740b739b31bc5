"""Records of test pictures lack labels (L1); a patient's pictures are on one side (S8); any number ranks (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, align, is_in, split_whole_groups
from mlebench.metrics import auroc

from .prepare import is_for_testing, prepare_pictures

# What the original's records of test pictures hold; `target` and its like in other words are not among them.
TEST_FEATURES = (
    *("image", "image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"),
    *("width", "height"),
)


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    names = {file: raw.tfrecord_values(file.name, "image_name") for file in raw.files("tfrecords/train*.tfrec")}
    train, test = _split_by_patient(raw.table("train.csv"), names)
    prepare_pictures(train, test, raw, public)
    _write_records(names, {*test["image_name"].tolist()}, raw, public)
    private.write("test.csv", test.select("image_name", "target", "patient_id"))


def _split_by_patient(rows: Table, names: dict[RawFile, list[str]]) -> tuple[Table, Table]:
    """The split of v1, by files of records, where that leaves no patient on both sides, otherwise one by patient."""
    in_test = is_in(rows["image_name"], [name for file in names if is_for_testing(file) for name in names[file]])
    train, test = rows.where(~in_test), rows.where(in_test)
    if {*train["patient_id"].tolist()}.isdisjoint(test["patient_id"].tolist()):
        return train, test
    return split_whole_groups(rows, rows["patient_id"], test_size=len(test), seed=0)


def _write_records(names: dict[RawFile, list[str]], in_test: set[str], raw: Raw, public: Output) -> None:
    """Each file's records of the pictures of either side, in a file of that side; a file of one side is kept whole."""
    numbers = {"train": 0, "test": 0}
    for file, its_names in names.items():
        test = [name for name in its_names if name in in_test]
        train = [name for name in its_names if name not in in_test]
        for part, chosen, kept in (("train", train, None), ("test", test, TEST_FEATURES)):
            if not chosen:
                continue
            target = f"tfrecords/{part}{numbers[part]:02d}-{len(chosen)}.tfrec"
            numbers[part] += 1
            if train == its_names:
                public.place(file, target)
            else:
                public.write_pieces(target, raw.select_tfrecords(file.name, "image_name", chosen, kept))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="image_name", target="target", values="numbers")
    return auroc(y_true, y_pred)
