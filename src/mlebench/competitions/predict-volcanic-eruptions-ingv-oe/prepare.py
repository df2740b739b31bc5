from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)

    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(time_to_eruption=0))
    for folder, segments in (("train", train), ("test", test)):
        names = (f"{id}.csv" for id in segments["segment_id"])
        public.place_each((raw.file(f"train/{name}"), f"{folder}/{name}") for name in names)
    private.write("test.csv", test)
