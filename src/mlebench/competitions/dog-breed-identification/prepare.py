from mlebench.kit import Output, Raw, accepts_paths, one_hot, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("labels.csv")
    train, test = split_rows(labels, test_size=0.1, seed=0)
    breeds, ids = sorted(set(labels["breed"])), test.select("id")

    public.write("labels.csv", train)
    public.write("sample_submission.csv", ids.assign(dict.fromkeys(breeds, 1 / len(breeds))))
    for folder, part in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{id}.jpg"), f"{folder}/{id}.jpg") for id in part["id"])
    private.write("test.csv", ids.assign(one_hot(test["breed"], breeds)))
