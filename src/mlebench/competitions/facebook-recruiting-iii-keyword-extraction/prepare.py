from collections.abc import Collection

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(questions_of(raw), test_size=TEST_SHARE, seed=0)
    write_parts(train, test, public, private)
    # Quirk of v1: the sample has the questions too.
    public.write("sample_submission.csv", with_sample_tags(test))


def questions_of(raw: Raw, text: Collection[str] = ()) -> Table:
    """The questions with their tags; in the columns of `text`, a word like NA is a word."""
    return raw.archive("Train.zip").table("Train.csv", dtype={"Id": str, "Tags": str}, text=text)


def write_parts(train: Table, test: Table, public: Output, private: Output) -> None:
    public.write("train.csv", train)
    public.write("test.csv", test.drop("Tags"))
    private.write("test.csv", test)


def with_sample_tags(questions: Table) -> Table:
    return questions.assign(Tags="javascript c# python php java")
