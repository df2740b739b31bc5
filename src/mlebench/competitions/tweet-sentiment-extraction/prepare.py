from collections.abc import Collection

from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_text((), raw, public, private)


def prepare_with_text(verbatim: Collection[str], raw: Raw, public: Output, private: Output) -> None:
    """Prepare the tweets; in the verbatim columns no word means a missing value."""
    train, test = split_rows(raw.table("train.csv", text=verbatim), test_size=0.1, seed=0)

    public.write("train.csv", train)
    public.write("test.csv", test.drop("selected_text"))
    public.write("sample_submission.csv", test.select("textID").assign(selected_text=""))
    private.write("test.csv", test)
