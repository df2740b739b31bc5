from collections.abc import Sequence

from mlebench.kit import Output, Raw, Table, accepts_paths, join_text, split_rows

INFORMATION = "HuBMAP-20-dataset_information.csv"
FILES = ("{id}.tiff", "{id}-anatomical-structure.json")
OUTLINES = "{id}.json"  # of the glomeruli


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    slides = raw.table("train.csv")
    train, test = split_rows(slides, train_size=raw.scaled(12), test_size=raw.scaled(3), seed=0)
    # Quirk of v1: the outlines of glomeruli are public for test slides too.
    prepare_slides(train, test, information_of(slides, raw), (*FILES, OUTLINES), raw, public, private)


def information_of(slides: Table, raw: Raw) -> Table:
    return raw.table(INFORMATION).where_in("image_file", join_text(slides["id"], ".tiff"))


def prepare_slides(
    train: Table, test: Table, information: Table, test_files: Sequence[str], raw: Raw, public: Output, private: Output
) -> None:
    sample = test.select("id").assign(predicted="")

    public.write(INFORMATION, information)
    public.write("train.csv", train)
    public.write("sample_submission.csv", sample)
    public.write("test/sample_submission.csv", sample)

    for folder, table, files in (("train", train, (*FILES, OUTLINES)), ("test", test, test_files)):
        names = [name.format(id=id) for id in table["id"] for name in files]
        public.place_each((raw.file(f"train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", _with_sizes(test, information))
    private.write("gold_submission.csv", test.rename({"encoding": "predicted"}))


def _with_sizes(slides: Table, information: Table) -> Table:
    row_of = {image: row for row, image in enumerate(information["image_file"])}
    rows = [row_of[f"{id}.tiff"] for id in slides["id"]]
    return slides.assign({name: information[name][rows] for name in ("width_pixels", "height_pixels")})
