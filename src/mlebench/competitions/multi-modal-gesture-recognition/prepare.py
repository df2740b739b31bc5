import random
from pathlib import PurePosixPath

from mlebench.kit import Output, Raw, Table, accepts_paths, is_in

GESTURES = range(1, 21)
TEST_SAMPLES = "training4.tar.gz"  # the last of the training archives is the test set
AS_THEY_ARE = (
    *(f"training{part}.tar.gz" for part in (1, 2, 3)),
    *(f"validation{part}.tar.gz" for part in (1, 2, 3)),
    "devel01-40.7z",
    "valid_all_files_combined.7z",
    "sample_code_mmrgc.zip",
)


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_all_but_samples(raw, public, private)
    # Quirk of v1: the labels to predict are in it.
    public.place(raw.file(TEST_SAMPLES), "test.tar.gz")


def prepare_all_but_samples(raw: Raw, public: Output, private: Output) -> None:
    """Write everything except the archive of test samples."""
    # Samples are named `Sample00301.zip`; that one is 0301.
    members = [PurePosixPath(name) for name in raw.member_names(TEST_SAMPLES)]
    test_ids = sorted(name.stem[-4:] for name in members if name.suffix == ".zip" and len(name.parts) == 1)
    labelled = raw.table("training.csv", dtype={"Id": str, "Sequence": str})
    in_test = is_in(labelled["Id"], test_ids)
    shuffle = random.Random(0).sample
    guesses = [" ".join(map(str, shuffle(GESTURES, len(GESTURES)))) for _ in test_ids]

    public.write("training.csv", labelled.where(~in_test))
    public.write("test.csv", Table.from_columns({"Id": test_ids}))
    public.write("randomPredictions.csv", Table.from_columns({"Id": test_ids, "Sequence": guesses}))
    public.place_each((raw.file(name), name) for name in AS_THEY_ARE)
    private.write("test.csv", labelled.where(in_test))
