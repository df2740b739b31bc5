from mlebench.kit import ImageCatalogue, Output, Raw, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sides(*split_sheets(raw), raw, public, private)


def split_sheets(raw: Raw) -> tuple[ImageCatalogue, ImageCatalogue]:
    sheets = ImageCatalogue.read(raw, "train/metadata.json")
    return sheets.split(test_size=0.2, seed=0, small_below=5)


def prepare_sides(train: ImageCatalogue, test: ImageCatalogue, raw: Raw, public: Output, private: Output) -> None:
    test = test.numbered("images/{thousand:03d}/{number}.jpg")
    answers, of_test = test.labels("Id", "Predicted"), test.as_json("images", "info", "licenses")

    public.write_json("train/metadata.json", train.as_json(), indent=4, sort_keys=True)
    public.write_json("test/metadata.json", of_test, indent=4, sort_keys=True)
    public.write("sample_submission.csv", answers.assign(Predicted=0))
    public.place_each(train.placements(raw, "train/", "train/"))
    public.place_each(test.placements(raw, "train/", "test/"))
    private.write("answers.csv", answers)
