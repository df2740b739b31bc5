import random

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

ALGORITHMS = ("JMiPOD", "JUNIWARD", "UERD")
VERSIONS = ("Cover", *ALGORITHMS)  # folders, each with a version of every picture


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sides(*split_covers(raw), random.Random(0), raw, public, private)


def split_covers(raw: Raw) -> tuple[list[str], list[str]]:
    covers = [file.path.name for file in raw.files("Cover/*.jpg")]
    # As many as the original test set had, out of 75,000.
    return split_rows(covers, test_size=raw.scaled(5000), seed=42)


def prepare_sides(
    train: list[str], test: list[str], rng: random.Random, raw: Raw, public: Output, private: Output
) -> None:
    for folder in VERSIONS:  # pictures with the same number are versions of one picture
        public.place_each(
            (raw.file(f"{folder}/{name}"), f"{folder}/{number:05d}.jpg") for number, name in enumerate(train, start=1)
        )

    folders, names = _drawn_versions(test, rng)
    ids = [f"{number:04d}.jpg" for number in range(1, len(test) + 1)]
    public.place_each(
        (raw.file(f"{folder}/{name}"), f"Test/{id}") for folder, name, id in zip(folders, names, ids, strict=True)
    )
    answers = Table.from_columns({"Id": ids, "Label": [int(folder != "Cover") for folder in folders]})
    public.write("sample_submission.csv", answers.assign(Label=0))
    private.write("test.csv", answers)


def _drawn_versions(names: list[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Pictures in another order, and for each the folder of the version to take: Cover with probability one half."""
    shuffled = list(names)
    rng.shuffle(shuffled)
    return ["Cover" if rng.choice([True, False]) else rng.choice(ALGORITHMS) for _ in shuffled], shuffled
