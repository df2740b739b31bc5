from mlebench.kit import Output, Raw, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    phrases = raw.archive("train.tsv.zip").table("train.tsv", sep="\t")
    train, test = split_rows(phrases, test_size=0.3, seed=0)

    public.pack("train.tsv.zip", {"train.tsv": train}, deflate=True)
    public.pack("test.tsv.zip", {"test.tsv": test.drop("Sentiment")}, deflate=True)
    public.write("sampleSubmission.csv", test.select("PhraseId").assign(Sentiment=2))
    private.write("answers.csv", test)
