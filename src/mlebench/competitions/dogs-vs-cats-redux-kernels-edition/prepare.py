from itertools import count

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sides(*split_pictures(raw), public, private)


def split_pictures(raw: Raw) -> tuple[list[RawFile], list[RawFile]]:
    return split_rows(raw.archive("train.zip").files("train/*.jpg"), test_size=0.1, seed=0)


def prepare_sides(train: list[RawFile], test: list[RawFile], public: Output, private: Output) -> None:
    answers = Table.from_columns({"id": range(1, len(test) + 1), "label": [int(_kind(file) == "dog") for file in test]})
    images = {
        "train": _numbered_by_kind(train),
        "test": {f"{id}.jpg": file for id, file in enumerate(test, start=1)},
    }

    for side, named in images.items():  # published twice: in a folder and, at its top level, in an archive
        public.place_each((file, f"{side}/{name}") for name, file in named.items())
        public.pack(f"{side}.zip", named)
    public.write("sample_submission.csv", answers.assign(label=0.5))
    private.write("answers.csv", answers)


def _numbered_by_kind(files: list[RawFile]) -> dict[str, RawFile]:
    numbers = {"cat": count(), "dog": count()}
    return {f"{kind}.{next(numbers[kind])}.jpg": file for kind, file in zip(map(_kind, files), files, strict=True)}


def _kind(file: RawFile) -> str:
    """`cat` or `dog`: what the name of a raw picture begins with."""
    return file.path.name.split(".")[0]
