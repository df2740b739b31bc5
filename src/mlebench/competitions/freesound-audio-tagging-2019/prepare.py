from mlebench.kit import Output, Raw, accepts_paths

META = "FSDKaggle2019.meta"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    classes = raw.table("sample_submission.csv").columns[1:]
    published = raw.beside_archive(f"{META}.zip").archive(f"{META}.zip")
    clips = published.table(f"{META}/test_post_competition.csv")
    clips = clips.where(clips["usage"] == "Private")
    labels = [set(text.split(",")) for text in clips["labels"].tolist()]
    answers = clips.select("fname").assign({name: [int(name in found) for found in labels] for name in classes})

    public.place_each((file, file.name) for file in raw.files("**") if META not in file.path.parts[0])
    private.write("test.csv", answers)
