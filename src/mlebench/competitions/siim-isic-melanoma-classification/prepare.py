from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, is_in

TEST_FILES = ("train00", "train06")  # of the 16 TFRecord files


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    files = raw.files("tfrecords/train*.tfrec")
    test_files = [file for file in files if is_for_testing(file)]
    train_files = [file for file in files if file not in test_files]
    test_names = [name for file in test_files for name in raw.tfrecord_values(file.name, "image_name")]
    rows = raw.table("train.csv")
    in_test = is_in(rows["image_name"], test_names)
    train, test = rows.where(~in_test), rows.where(in_test)

    prepare_pictures(train, test, raw, public)
    for part, its_files in (("train", train_files), ("test", test_files)):
        for number, file in enumerate(its_files):
            size = file.path.stem.split("-")[1]
            public.place(file, f"tfrecords/{part}{number:02d}-{size}.tfrec")
    private.write("test.csv", test.select("image_name", "target"))


def is_for_testing(file: RawFile) -> bool:
    return file.path.stem.split("-")[0] in TEST_FILES


def prepare_pictures(train: Table, test: Table, raw: Raw, public: Output) -> None:
    public.write("train.csv", train)
    public.write("test.csv", test.drop("diagnosis", "benign_malignant", "target"))
    public.write("sample_submission.csv", test.select("image_name").assign(target=0))
    for part, table in (("train", train), ("test", test)):
        names = table["image_name"]
        public.place_each((raw.file(f"train/{name}.dcm"), f"{part}/{name}.dcm") for name in names)
        public.place_each((raw.file(f"jpeg/train/{name}.jpg"), f"jpeg/{part}/{name}.jpg") for name in names)
