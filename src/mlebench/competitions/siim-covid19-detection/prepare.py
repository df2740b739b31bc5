import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, is_in, join_text, split_rows

APPEARANCES = ("negative", "typical", "indeterminate", "atypical")  # in the order of the table's columns


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = (rows.sort_by("id") for rows in split_rows(raw.table("train_study_level.csv"), test_size=0.1, seed=0))
    images = raw.table("train_image_level.csv").sort_by("id")
    studies = join_text(images["StudyInstanceUID"], "_study")
    test_images = images.where(is_in(studies, test["id"]))

    public.write("train_study_level.csv", train)
    public.write("train_image_level.csv", images.where(is_in(studies, train["id"])))
    for folder, rows in (("train", train), ("test", test)):
        for study in rows["id"]:
            study = study.removesuffix("_study")
            public.place_tree(raw, f"train/{study}", f"{folder}/{study}")
    appearance = np.column_stack([test[name] for name in test.columns[1:]]).argmax(axis=1)
    truth = [f"{APPEARANCES[number]} 1 0 0 1 1" for number in appearance]
    guess = ["negative 1 0 0 1 1"] * len(test) + ["none 1 0 0 1 1"] * len(test_images)
    public.write("sample_submission.csv", _submission(test, test_images, guess))
    private.write("test.csv", _submission(test, test_images, [*truth, *test_images["label"]]))


def _submission(studies: Table, images: Table, predictions: list[str]) -> Table:
    return Table.from_columns({"id": [*studies["id"], *images["id"]], "PredictionString": predictions})
