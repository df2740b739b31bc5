import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, join_text, renumber, split_groups, unique


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_patients(raw, public, private)


def prepare_patients(raw: Raw, public: Output, private: Output) -> Table:
    """Write all files; return the answers."""
    train, test = split_groups(raw.table("train.csv"), "Patient", test_size=0.1, seed=0, order="blocks")
    answers = _every_week(test).assign(Confidence=100)

    public.write("train.csv", train)
    public.write("test.csv", test.sort_by("Weeks").group_first("Patient"))  # the first visit is given
    public.write("sample_submission.csv", answers.select("Patient_Week").assign(FVC=2000, Confidence=100))
    for folder, visits in (("train", train), ("test", test)):
        for patient in unique(visits["Patient"]):
            public.place_tree(raw, f"train/{patient}", f"{folder}/{patient}")
    private.write("test.csv", answers)
    return answers


def _every_week(visits: Table) -> Table:
    """For each patient a row for every week from the first to the last in which any patient was seen.

    What is known about a visit is in its week; the other weeks have gaps. Nobody was seen twice in one week; that only
    happened to patients of the train split.
    """
    patients, weeks = unique(visits["Patient"]), visits["Weeks"]
    first, span = weeks.min(), weeks.max() - weeks.min() + 1
    places = np.arange(len(patients) * span)
    patient, week = patients[places // span], places % span + first
    rows = np.full(len(places), -1)  # of visits
    rows[renumber(visits["Patient"]) * span + weeks - first] = np.arange(len(visits))

    known = {name: _with_gaps(visits[name], rows) for name in visits.columns}
    known |= {"Patient": patient, "Weeks": week, "Patient_Week": join_text(patient, "_", week)}
    return Table.from_columns(known)


def _with_gaps(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Values of some rows, with a gap where the row is -1; then whole numbers become floats."""
    gaps = rows < 0
    if gaps.any() and values.dtype.kind in "iu":
        values = values.astype(float)
    taken = values[rows]
    taken[gaps] = np.nan
    return taken
