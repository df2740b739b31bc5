from mlebench.kit import Output, PrerequisiteError, Raw

META = "FSDKaggle2019.meta"


def prepare(raw: Raw, public: Output, private: Output) -> None:
    if not raw.exists(f"{META}.zip"):
        raise PrerequisiteError(
            f"the labels of the test clips are missing: they are not in Kaggle's archive. Get {META}.zip of the data "
            "set FSDKaggle2019 from Zenodo, and put it, as it is, into the folder raw/ together with all that "
            "Kaggle's archive holds, unpacked"
        )
    classes = raw.table("sample_submission.csv").columns[1:]
    clips = raw.archive(f"{META}.zip").table(f"{META}/test_post_competition.csv")
    clips = clips.where(clips["usage"] == "Private")
    labels = [set(text.split(",")) for text in clips["labels"].tolist()]
    answers = clips.select("fname").assign({name: [int(name in found) for found in labels] for name in classes})

    public.place_each((file, file.name) for file in raw.files("**") if META not in file.path.parts[0])
    private.write("test.csv", answers)
