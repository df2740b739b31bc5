import random

from mlebench.kit import Output, Raw, Table, accepts_paths, encode_runs, npy_shape, split_rows

BANDS = [f"band_{number:02d}.npy" for number in range(8, 17)]
LABELS = ["human_individual_masks.npy", "human_pixel_masks.npy"]
NPY_HEADER = 1024  # bytes, at most


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    answers = prepare_records(raw, public, private)
    # Quirk of v1: the sample also has the height and the width of each image.
    public.write("sample_submission.csv", answers.assign(encoded_pixels=random_guesses(len(answers))))


def random_guesses(count: int) -> list[str]:
    draw = random.Random(0)
    return [draw.choice(["1 3 10 5", "-"]) for _ in range(count)]


def prepare_records(raw: Raw, public: Output, private: Output) -> Table:
    """Write all but the sample submission; return the answers."""
    records, validation = raw.json("train_metadata.json"), raw.json("validation_metadata.json")
    train, test = split_rows(records, test_size=len(validation), seed=0)
    test_ids = [record["record_id"] for record in test]
    answers = _answers(raw, test_ids)

    public.write_json("train_metadata.json", train)
    public.place(raw.file("validation_metadata.json"), "validation_metadata.json")

    public.place_tree(raw, "validation", "validation")
    names = [f"train/{record['record_id']}/{name}" for record in train for name in (*BANDS, *LABELS)]
    public.place_each((raw.file(name), name) for name in names)
    bands = [f"{id}/{name}" for id in test_ids for name in BANDS]
    public.place_each((raw.file(f"train/{name}"), f"test/{name}") for name in bands)
    private.write("answers.csv", answers)
    return answers


def _answers(raw: Raw, ids: list[str]) -> Table:
    masks = [encode_runs(raw.array(f"train/{id}/human_pixel_masks.npy")) for id in ids]
    shapes = [npy_shape(raw.file(f"train/{id}/{BANDS[0]}").head(NPY_HEADER)) for id in ids]
    return Table.from_columns(
        {
            "record_id": ids,
            "encoded_pixels": [" ".join(map(str, runs)) or "-" for runs in masks],
            "height": [shape[0] for shape in shapes],
            "width": [shape[1] for shape in shapes],
        }
    )
