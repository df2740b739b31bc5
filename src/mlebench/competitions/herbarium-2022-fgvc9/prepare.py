from collections import Counter

from mlebench.kit import ImageCatalogue, Output, Raw, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sides(*split_sheets(raw), raw, public, private)


def split_sheets(raw: Raw) -> tuple[ImageCatalogue, ImageCatalogue]:
    return ImageCatalogue.read(raw, "train_metadata.json", id="image_id").split(test_size=0.2, seed=0)


def prepare_sides(train: ImageCatalogue, test: ImageCatalogue, raw: Raw, public: Output, private: Output) -> None:
    train = _numbered_within_categories(train)
    test = test.numbered("{thousand:03d}/test-{number:06d}.jpg")
    answers = test.labels("Id", "Predicted")

    public.write_json("train_metadata.json", train.as_json(), indent=4, sort_keys=True)
    public.write_json("test_metadata.json", test.images, indent=4, sort_keys=True)
    public.write("sample_submission.csv", answers.assign(Predicted=42))
    public.place_each(train.placements(raw, "train_images/", "train_images/"))
    public.place_each(test.placements(raw, "train_images/", "test_images/"))
    private.write("answers.csv", answers)


def _numbered_within_categories(sheets: ImageCatalogue) -> ImageCatalogue:
    """Ids such as `00042__001`, without the gaps that test images leave."""
    ids, names, seen = [], [], Counter[int]()
    for category in sheets.categories:
        seen[category] += 1
        ids.append(f"{category:05d}__{seen[category]:03d}")
        names.append(f"{category // 100:03d}/{category % 100:02d}/{ids[-1]}.jpg")
    return sheets.renamed(names, ids)
