"""Original texts of a competition: what its makers published, and so what a model may have read.

They come from a folder of the user's, and from real data in the data directory. Our twins and descriptions are never
originals, wherever they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import disk_errors
from mlebench.data.sources import choose_raw
from mlebench.data.state import description_kind, holds_twins, source_kind
from mlebench.kit.raw import RawFile, open_raw
from mlebench.registry import Competition

PROSE, TABLES = (".md", ".txt"), (".csv", ".tsv")
MOST_READ = 1 << 20  # bytes of a file
MOST_FILES = 20  # of a folder
MOST_TABLES = 4  # of raw data


@dataclass(frozen=True)
class Original:
    name: str  # as shown to the model
    text: str

    @property
    def is_table(self) -> bool:
        return self.name.lower().endswith(TABLES)


@dataclass(frozen=True)
class Originals:
    originals: list[Original]
    reason: str | None = None  # why there are none


def find_originals(competition: Competition, texts: Path | None) -> Originals:
    """All originals; if there are none, the reason in a sentence."""
    try:
        with disk_errors(competition.paths.root, competition.paths.root):
            searches = [*([_given(competition, texts)] if texts else []), _of_data(competition)]
    except PrerequisiteError as error:
        return Originals([], str(error))
    originals_of_all = [original for originals, _ in searches for original in originals]
    return (
        Originals(originals_of_all)
        if originals_of_all
        else Originals([], "; ".join(reason for _, reason in searches if reason))
    )


def _given(competition: Competition, texts: Path) -> tuple[list[Original], str | None]:
    folder = texts / competition.id
    records = paths.twin_record(folder / "any"), paths.twin_record(folder.resolve())  # beside raw data, as always
    if holds_twins(texts) or any(record.is_file() for record in records):
        return [], f"{folder} is a twin's"
    files = [path for path in (texts / f"{competition.id}{end}" for end in PROSE) if path.is_file()]
    if folder.is_dir():
        files += [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in PROSE + TABLES][:MOST_FILES]
    if not files:
        return [], f"{texts} has no {competition.id}.md, no {competition.id}.txt and no folder {competition.id}"
    originals = [Original(path.name, _text(_head(path))) for path in files]
    theirs = [original for original in originals if not is_ours(original.text, competition)]
    return theirs, None if theirs else f"what {texts} has is our own description"


def prose_of_all(texts: Path) -> dict[str, list[str]]:
    """All prose in a folder of originals, by competition."""
    prose: dict[str, list[str]] = {}
    for path in sorted(path for path in texts.rglob("*") if path.suffix.lower() in PROSE and path.is_file()):
        relative = path.relative_to(texts)
        prose.setdefault(relative.stem if len(relative.parts) == 1 else relative.parts[0], []).append(
            _text(_head(path))
        )
    return prose


def is_ours(text: str, competition: Competition) -> bool:
    """Whether a text is our description, or a part of it."""
    return bool(text.strip()) and " ".join(text.split()) in " ".join(competition.description.split())


def _of_data(competition: Competition) -> tuple[list[Original], str | None]:
    data_paths = competition.paths
    raw = choose_raw(data_paths.raw, data_paths.archive)
    if (
        holds_twins(data_paths.data_dir)
        or data_paths.twin.is_file()
        or (raw and paths.twin_record(raw.resolve()).is_file())
    ):
        return [], f"the data in {data_paths.root} is a twin's"
    originals = [*_description(competition), *(_raw_tables(raw) if raw else ())]
    return originals, None if originals else f"there is no real raw data with a table in {data_paths.root}"


def _description(competition: Competition) -> Iterator[Original]:
    """Kaggle's own page, if real data was prepared with it."""
    path = competition.public_dir / paths.DESCRIPTION
    if description_kind(competition) == "original" and source_kind(competition) != "twin" and path.is_file():
        text = _text(_head(path))
        if not is_ours(text, competition):
            yield Original(path.name, text)


def _raw_tables(raw: Path) -> list[Original]:
    """Training data first: that is what people publish."""
    with open_raw(raw) as files:
        tables = [file for glob in ("*", "*/*") for end in TABLES for file in files.files(f"{glob}{end}")]
        zipped = [name for end in TABLES for name in (file.name for file in files.files(f"*{end}.zip"))]
        tables += [file for name in zipped[:MOST_TABLES] for file in files.archive(name).files("*")]
        tables = [file for file in tables if file.name.lower().endswith(TABLES)]
        tables.sort(key=lambda file: ("train" not in file.name.lower(), file.name))
        return [Original(file.path.name, _text(_raw_head(file))) for file in tables[:MOST_TABLES]]


def _raw_head(file: RawFile) -> bytes:
    with file.errors():
        return file.head(MOST_READ)


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MOST_READ)


def _text(content: bytes) -> str:
    """The text, cut to whole lines in case the file continues."""
    if len(content) == MOST_READ:
        content = content[: content.rfind(b"\n") + 1] or content
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
