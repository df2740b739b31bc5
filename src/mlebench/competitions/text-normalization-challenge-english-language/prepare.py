from collections.abc import Collection

from mlebench.kit import Output, Raw, accepts_paths, split_tokens


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_text((), raw, public, private)


def prepare_with_text(text: Collection[str], raw: Raw, public: Output, private: Output) -> None:
    """Prepare the tokens; in the columns of `text`, a word like NA is a word."""
    tokens = raw.archive("en_train.csv.zip").table("en_train.csv", text=text)
    train, test, answers, sample = split_tokens(tokens, test_size=0.1, seed=0)

    for name, table in {"en_train.csv": train, "en_test_2.csv": test, "en_sample_submission_2.csv": sample}.items():
        public.pack(f"{name}.zip", {name: table}, quoting="nonnumeric")
    private.write("answers.csv", answers, quoting="nonnumeric")
    private.write("sample_submission.csv", sample, quoting="nonnumeric")
