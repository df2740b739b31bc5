from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.files("train/*/*.png"), test_size=0.14, seed=0)
    answers = Table.from_columns(
        {"file": [image.path.name for image in test], "species": [image.path.parent.name for image in test]}
    )

    public.write("sample_submission.csv", answers.assign(species="Sugar beet"))
    public.place_each((image, image.name) for image in train)
    public.place_each((image, f"test/{image.path.name}") for image in test)
    private.write("answers.csv", answers)
