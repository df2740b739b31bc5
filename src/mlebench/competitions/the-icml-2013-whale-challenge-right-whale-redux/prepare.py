import re

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths

TRAIN_DATES = 2  # of four; the later two are for testing


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    clips = raw.archive("train2.zip").files("train2/*")  # named by date and time, so in chronological order
    early = sorted({_date(clip) for clip in clips})[:TRAIN_DATES]
    train = [clip for clip in clips if _date(clip) in early]
    test = [clip for clip in clips if _date(clip) not in early]

    # Clips are renumbered; names of train clips end with the label, which names of test clips lack.
    named = {re.sub(r"TRAIN\d+", f"TRAIN{number}", clip.path.name): clip for number, clip in enumerate(train)}
    hidden = {f"{clip.path.name.split('TRAIN')[0]}Test{number}.aif": clip for number, clip in enumerate(test)}
    labels = [int(clip.path.stem.endswith("_1")) for clip in test]
    answers = Table.from_columns({"clip": list(hidden), "probability": labels})

    for folder, members in (("train2", named), ("test2", hidden)):
        inside = {f"{folder}/{name}": clip for name, clip in members.items()}
        public.pack(f"{folder}.zip", {f"{folder}/": b"", **inside}, deflate=True)
    public.write("sampleSubmission.csv", answers.assign(probability=0))
    private.write("test.csv", answers)


def _date(clip: RawFile) -> str:
    return clip.path.name.split("_")[0]
