from mlebench.kit import Output, Raw, Table, accepts_paths, join_text, split_rows

INFORMATION = "HuBMAP-20-dataset_information.csv"
# Quirk of v1: {id}.json, which outlines the glomeruli, is public for test slides too.
FILES = ("{id}.tiff", "{id}.json", "{id}-anatomical-structure.json")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    slides = raw.table("train.csv")
    train, test = split_rows(slides, train_size=raw.scaled(12), test_size=raw.scaled(3), seed=0)
    information = raw.table(INFORMATION).where_in("image_file", join_text(slides["id"], ".tiff"))
    sample = test.select("id").assign(predicted="")

    public.write(INFORMATION, information)
    public.write("train.csv", train)
    public.write("sample_submission.csv", sample)
    public.write("test/sample_submission.csv", sample)

    for folder, table in (("train", train), ("test", test)):
        names = [name.format(id=id) for id in table["id"] for name in FILES]
        public.place_each((raw.file(f"train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", _with_sizes(test, information))
    private.write("gold_submission.csv", test.rename({"encoding": "predicted"}))


def _with_sizes(slides: Table, information: Table) -> Table:
    row_of = {image: row for row, image in enumerate(information["image_file"])}
    rows = [row_of[f"{id}.tiff"] for id in slides["id"]]
    return slides.assign({name: information[name][rows] for name in ("width_pixels", "height_pixels")})
