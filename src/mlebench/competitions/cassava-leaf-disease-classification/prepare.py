from collections.abc import Collection

from mlebench.kit import Output, Raw, accepts_paths, is_in, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_features(None, raw, public, private)


def prepare_with_features(kept: Collection[str] | None, raw: Raw, public: Output, private: Output) -> None:
    """Prepare the pictures, with only these features in test records, or with all of them."""
    # TFRecord files are split whole; rows follow the file that holds their picture, which only the records reveal.
    train_files, test_files = split_rows(raw.files("train_tfrecords/*.tfrec"), test_size=0.1, seed=0)
    test_ids = [id for file in test_files for id in raw.tfrecord_values(file.name, "image_name")]
    rows = raw.table("train.csv")
    in_test = is_in(rows["image_id"], test_ids)
    train, test = rows.where(~in_test), rows.where(in_test)

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(label=4))
    public.place(raw.file("label_num_to_disease_map.json"), "label_num_to_disease_map.json")
    for part, table, files in (("train", train, train_files), ("test", test, test_files)):
        public.place_each((raw.file(f"train_images/{id}"), f"{part}_images/{id}") for id in table["image_id"])
        for number, file in enumerate(files):
            size = file.path.stem.split("-")[1]
            name = f"{part}_tfrecords/ld_{part}{number:02d}-{size}.tfrec"
            if part == "test" and kept is not None:
                public.write_pieces(name, raw.select_tfrecords(file.name, "image_name", test_ids, kept))
            else:
                public.place(file, name)
    private.write("test.csv", test)
