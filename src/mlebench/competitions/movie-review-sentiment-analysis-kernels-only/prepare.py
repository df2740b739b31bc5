from collections.abc import Collection

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    write_parts(*split_rows(phrases_of(raw), test_size=0.3, seed=0), public, private)


def phrases_of(raw: Raw, text: Collection[str] = ()) -> Table:
    """The labelled phrases; in the columns of `text`, a word like NA is a word."""
    return raw.archive("train.tsv.zip").table("train.tsv", sep="\t", text=text)


def write_parts(train: Table, test: Table, public: Output, private: Output) -> None:
    public.pack("train.tsv.zip", {"train.tsv": train}, deflate=True)
    public.pack("test.tsv.zip", {"test.tsv": test.drop("Sentiment")}, deflate=True)
    public.write("sampleSubmission.csv", test.select("PhraseId").assign(Sentiment=2))
    private.write("answers.csv", test)
