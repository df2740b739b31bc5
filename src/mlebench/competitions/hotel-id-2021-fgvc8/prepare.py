from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

IN_TWO_ROWS = "ce27d36c9147cc19.jpg"  # its rows could land on both sides of the split
SAMPLE = "36363 53586 18807 64314 60181"
TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(labels_of(raw), test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def labels_of(raw: Raw) -> Table:
    labels = raw.table("train.csv")
    return labels.where(labels["image"] != IN_TWO_ROWS)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    for image, chain in zip(train["image"], train["chain"], strict=True):
        public.place(raw.file(f"train_images/{chain}/{image}"), f"train_images/{chain}/{image}")
    for image, chain in zip(test["image"], test["chain"], strict=True):  # without the folder, which reveals the chain
        public.place(raw.file(f"train_images/{chain}/{image}"), f"test_images/{image}")
    public.write("train.csv", train)
    public.write("sample_submission.csv", test.select("image").assign(hotel_id=SAMPLE))
    private.write("test.csv", test)
