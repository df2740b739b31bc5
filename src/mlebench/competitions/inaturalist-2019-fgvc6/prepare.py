from mlebench.kit import ImageCatalogue, Output, Raw, accepts_paths

PHOTOS = "train_val2019.tar.gz"
A_CATEGORY = 654  # what the sample submission says


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = prepare_catalogues(*split_photos(raw), public, private)
    public.place(raw.file("val2019.json"), "val2019.json")
    photos = raw.archive(PHOTOS)
    for folder, part in (("train_val2019", train), ("test2019", test)):
        members = {name.removeprefix(f"{folder}/"): file for file, name in part.placements(photos)}
        # Quirk of v1: it is called .gz, but is a plain tar.
        public.pack(f"{folder}.tar.gz", members, format="tar")


def split_photos(raw: Raw) -> tuple[ImageCatalogue, ImageCatalogue]:
    return ImageCatalogue.read(raw, "train2019.json").split(test_size=0.12, seed=0, small_below=5)


def prepare_catalogues(
    train: ImageCatalogue, test: ImageCatalogue, public: Output, private: Output
) -> tuple[ImageCatalogue, ImageCatalogue]:
    """Write what is known of the photographs for training and of those for testing, and return it."""
    test = test.renamed([f"test2019/{name.rpartition('/')[2]}" for name in test.raw_names])
    answers = test.labels("id", "predicted")

    public.write_json("train2019.json", train.as_json(), indent=4, sort_keys=True)
    public.write_json("test2019.json", test.as_json("images", "info", "licenses"), indent=4, sort_keys=True)
    public.write("kaggle_sample_submission.csv", answers.assign(predicted=A_CATEGORY))
    private.write("answers.csv", answers)
    return train, test
