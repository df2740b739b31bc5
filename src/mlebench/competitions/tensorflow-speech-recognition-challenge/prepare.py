from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    clips = raw.archive("train.7z").files("train/audio/**/*.wav")
    clips.sort(key=lambda clip: f"{clip.path.parent.name}_{clip.path.name}")
    train, test = split_rows(clips, test_size=0.1, seed=0)

    # Words share file names, so test clips get new ones.
    names = [f"clip_{number:08}.wav" for number in range(len(test))]
    answers = Table.from_columns({"fname": names, "label": [clip.path.parent.name for clip in test]})

    public.place_each((clip, f"train/audio/{clip.path.parent.name}/{clip.path.name}") for clip in train)
    public.place_each((clip, f"test/audio/{name}") for clip, name in zip(test, names, strict=True))
    public.write("sample_submission.csv", answers.assign(label="silence"))
    private.write("test.csv", answers)
