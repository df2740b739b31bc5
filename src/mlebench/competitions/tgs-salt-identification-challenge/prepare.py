from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, _ = prepare_images(raw, public, private)
    # Quirk of v1: the depth of test images is not given.
    public.write("depths.csv", raw.table("depths.csv").where_in("id", train["id"]).sort_by("id"))


def prepare_images(raw: Raw, public: Output, private: Output) -> tuple[Table, Table]:
    """Write all but the depths; return the masks for training and those for testing."""
    data = raw.archive("competition_data.zip")
    train, test = split_rows(data.table("competition_data/train.csv"), test_size=0.25, seed=0)
    train, test = train.sort_by("id"), test.sort_by("id")

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(rle_mask="1 1"))

    for kind, folder, images in (("images", "train", train), ("masks", "train", train), ("images", "test", test)):
        names = [f"{kind}/{id}.png" for id in images["id"]]
        public.place_each((data.file(f"competition_data/train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", test)
    return train, test
