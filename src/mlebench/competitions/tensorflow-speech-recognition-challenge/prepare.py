from collections.abc import Iterable, Sequence

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, split_rows

TEST_SHARE = 0.1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(clips_of(raw), test_size=TEST_SHARE, seed=0)
    answers = numbered(map(word_of, test))

    place_for_training(train, public)
    public.place_each((clip, f"test/audio/{name}") for clip, name in zip(test, answers["fname"], strict=True))
    write_tables(answers, public, private)


def clips_of(raw: Raw) -> list[RawFile]:
    """All recordings, by word; those of background noise are among them."""
    clips = raw.archive("train.7z").files("train/audio/**/*.wav")
    return sorted(clips, key=lambda clip: f"{word_of(clip)}_{clip.path.name}")


def word_of(clip: RawFile) -> str:
    return clip.path.parent.name


def numbered(labels: Iterable[str]) -> Table:
    """The answers. Words share file names, so test clips get new ones."""
    labels = [*labels]
    return Table.from_columns({"fname": [f"clip_{row:08}.wav" for row in range(len(labels))], "label": labels})


def place_for_training(clips: Sequence[RawFile], public: Output) -> None:
    public.place_each((clip, f"train/audio/{word_of(clip)}/{clip.path.name}") for clip in clips)


def write_tables(answers: Table, public: Output, private: Output) -> None:
    public.write("sample_submission.csv", answers.assign(label="silence"))
    private.write("test.csv", answers)
