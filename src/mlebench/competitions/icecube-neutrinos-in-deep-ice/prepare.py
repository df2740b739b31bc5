from mlebench.kit import Output, Raw, accepts_paths, split_groups, unique


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_groups(raw.table("train_meta.parquet"), by="batch_id", test_size=0.1, seed=0)
    test_batches = {f"batch_{number}" for number in unique(test["batch_id"])}

    public.write("train_meta.parquet", train)
    public.write("test_meta.parquet", test.drop("azimuth", "zenith"))
    public.write("sample_submission.csv", test.select("event_id").assign(azimuth=1, zenith=1))
    public.place(raw.file("sensor_geometry.csv"), "sensor_geometry.csv")
    for file in raw.files("train/*.parquet"):
        public.place(file, f"{'test' if file.path.stem in test_batches else 'train'}/{file.path.name}")
    private.write("test.csv", test.select("event_id", "azimuth", "zenith"))
