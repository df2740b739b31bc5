from mlebench.kit import Output, Raw, accepts_paths, one_hot, split_rows, unique


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    leaves = raw.archive("train.csv.zip").table("train.csv")
    species = sorted(unique(leaves["species"]))
    train, test = split_rows(leaves, test_size=0.1, seed=0)
    ids = test.select("id")

    public.write("train.csv", train)
    public.write("test.csv", test.drop("species"))
    public.write("sample_submission.csv", ids.assign(dict.fromkeys(species, 1 / len(species))))

    images = raw.archive("images.zip")
    public.place_each((images.file(f"images/{id}.jpg"), f"images/{id}.jpg") for id in leaves["id"])
    private.write("test.csv", ids.assign(one_hot(test["species"], species)))
    private.mkdir("images")  # Quirk of v1: nothing is in it
