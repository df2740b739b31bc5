from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    write_sides(train, test, raw, public, private)


def write_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    images = raw.archive("train_images.zip")

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(labels="U+003F 1 1 U+FF2F 2 2"))
    public.place(raw.file("unicode_translation.csv"), "unicode_translation.csv")
    for name, pages in (("train_images.zip", train), ("test_images.zip", test)):
        public.pack(name, {f"{id}.jpg": images.file(f"{id}.jpg") for id in pages["image_id"]})
    private.write("test.csv", test)
    private.write("gold_submission.csv", _gold(test))


def _gold(test: Table) -> Table:
    """A perfect submission: in each box, the point next to its upper left corner."""
    return test.assign(labels=[_corners(labels.split()) for labels in test["labels"]])


def _corners(boxes: list[str]) -> str:
    characters = zip(boxes[0::5], boxes[1::5], boxes[2::5], strict=True)
    return " ".join(f"{label} {int(x) + 1} {int(y) + 1}" for label, x, y in characters)
