from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train_labels.csv"), test_size=0.2, seed=0)

    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.assign(InChI="InChI=1S/H2O/h1H2"))
    public.place(raw.file("extra_approved_InChIs.csv"), "extra_approved_InChIs.csv")
    public.place_each(
        (raw.file(f"train/{place}"), f"{side}/{place}")
        for side, images in (("train", train), ("test", test))
        for place in map(_place, images["image_id"])
    )
    private.write("test.csv", test)


def _place(id: str) -> str:
    """Images are three folders deep, in folders named by the first three characters of their ids."""
    return f"{id[0]}/{id[1]}/{id[2]}/{id}.png"
