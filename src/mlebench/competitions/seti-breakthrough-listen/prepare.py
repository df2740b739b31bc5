from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_new_edition(raw, public, private)
    public.place_tree(raw, "old_leaky_data", "old_leaky_data")


@accepts_paths
def prepare_new_edition(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train_labels.csv"), test_size=0.1, seed=0)

    for folder, snippets in (("train", train), ("test", test)):
        for id in snippets["id"]:  # there is a folder for each first digit
            public.place(raw.file(f"train/{id[0]}/{id}.npy"), f"{folder}/{id[0]}/{id}.npy")
    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.assign(target=0.5))
    private.write("test.csv", test)
