from mlebench.kit import Output, Raw, Table, accepts_paths, join_text, renumber, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    train, test = _renamed(raw, public, train, "Train_"), _renamed(raw, public, test, "Test_")

    public.write("train.csv", train)
    public.write("test.csv", test.select("image_id"))
    public.write("sample_submission.csv", test.assign(dict.fromkeys(test.columns[1:], 0.25)))
    private.write("test.csv", test)


def _renamed(raw: Raw, public: Output, part: Table, prefix: str) -> Table:
    """The rows renumbered, and their pictures renamed to match: as in the original, ids show the split."""
    old, new = part["image_id"], join_text(prefix, renumber(part["image_id"]))
    public.place_each((raw.file(f"images/{a}.jpg"), f"images/{b}.jpg") for a, b in zip(old, new, strict=True))
    return part.assign(image_id=new)
