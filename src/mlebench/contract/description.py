"""What a description names: files, columns and the example of a submission.

The conventions are those of docs/guides/own-competition.md.
"""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from mlebench.description import SUBMISSION_HEADING

# Kaggle's headings: existing clients cut descriptions by them, and models know them.
HEADINGS = ("## Description", "## Evaluation", SUBMISSION_HEADING, "## Dataset Description")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`([^`\n]+)`")
RANGE = re.compile(r"`([^`\n]+)`(?:,? …,?| to)\s`([^`\n]+)`")
AND_SO_ON = re.compile(r"`([^`\n]+)`,? …(?! ?`)")
ANYTHING = re.compile(r"<[^<>/]+>|\*")
# fmt: off
FILE_KINDS = (
    "7z", "aif", "aiff", "avi", "bin", "bmp", "bson", "bz2", "csv", "dcm", "feather", "flac", "geojson", "gif", "gz",
    "h5", "hdf5", "html", "ipynb", "jpeg", "jpg", "json", "jsonl", "mat", "md", "mp3", "mp4", "nii", "npy", "npz",
    "parquet", "pdf", "png", "svg", "tar", "tfrec", "tfrecord", "tgz", "tif", "tiff", "tsv", "txt", "wav", "webp",
    "xml", "yaml", "zip",
)
# fmt: on


class SubmissionExample(NamedTuple):
    """A block that shows a submission; a sketch does not show all of it."""

    is_sketch: bool
    header: list[str]
    rows: list[list[str]]


class NameRange(NamedTuple):
    """Names that differ in one number."""

    before: str
    after: str
    first: int
    last: int

    def holds(self, name: str) -> bool:
        number = name.removeprefix(self.before).removesuffix(self.after)
        return (
            name == f"{self.before}{number}{self.after}"
            and number.isdecimal()
            and self.first <= int(number) <= self.last
        )


class PromisedFile(NamedTuple):
    """A file or a folder that a description says agents find."""

    written: str
    pattern: re.Pattern[str]

    def is_kept(self, names: Iterable[str]) -> bool:
        """Whether some file is called so, or is in a folder that is, wherever the folder is."""
        return any(self.pattern.search(f"/{name}") for name in names)


@dataclass(frozen=True)
class ParsedDescription:
    text: str

    @cached_property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ .*$", self._prose, re.MULTILINE)

    @cached_property
    def examples(self) -> list[SubmissionExample]:
        submission = self.text.partition(f"\n{SUBMISSION_HEADING}\n")[2].partition("\n## ")[0]
        return [_example(kind, content) for kind, content in FENCED.findall(submission)]

    @property
    def has_a_column_for_each_class(self) -> bool:
        """A placeholder by itself, like `<species>`, means the target columns."""
        return any(ANYTHING.fullmatch(name) for name in self._names)

    def names_column(self, column: str) -> bool:
        if not column:
            return "no name" in self.text
        return self._covers(column) or any(column in example.header for example in self.examples)

    def names_file(self, path: str) -> bool:
        """Whether some tail of the path is named, and the remaining folder too."""
        parts = PurePosixPath(path).parts
        return any(
            self._covers("/".join(parts[start:])) and (not start or self.names_file("/".join(parts[:start])))
            for start in range(len(parts))
        )

    def promised_files(self) -> list[PromisedFile]:
        """What "Dataset Description" names that looks like a file or a folder."""
        section = FENCED.sub("", self.text).partition("\n## Dataset Description\n")[2]
        ends = ("/", *(f".{kind}" for kind in FILE_KINDS))
        written = [name for name in NAME.findall(section) if name.endswith(ends) and not name.startswith(".")]
        return [PromisedFile(name, re.compile(_path_pattern(name))) for name in dict.fromkeys(written)]

    def _covers(self, name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in self._patterns) or any(
            numbers.holds(name) for numbers in self._ranges
        )

    @cached_property
    def _prose(self) -> str:
        return FENCED.sub("", self.text)

    @cached_property
    def _names(self) -> list[str]:
        return [name.removesuffix("/") for name in NAME.findall(self._prose)]

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        fixed = [ANYTHING.split(name) for name in self._names]
        # `<patient>_<side>` is how a value is made; as a pattern it would fit nearly every name.
        fixed = [parts for parts in fixed if re.search(r"[^\W_]", "".join(parts))]
        patterns = ["[^/]+".join(map(re.escape, parts)) for parts in fixed]
        patterns += [re.sub(r"\d+", r"\\d+", re.escape(name)) for name in AND_SO_ON.findall(self._prose)]
        return [re.compile(pattern) for pattern in patterns]

    @cached_property
    def _ranges(self) -> list[NameRange]:
        return [between for first, last in RANGE.findall(self._prose) for between in _ranges(first, last)]


def _path_pattern(name: str) -> str:
    """A part with digits may be one of many, of which a twin has fewer: any other, of the same kind, will do."""
    parts = name.rstrip("/").split("/")
    parts = [re.sub(r"^.*?\d.*?(\.[a-z]\w*)?$", r"*\1", part) for part in parts]
    return "/" + "[^/]+".join(map(re.escape, ANYTHING.split("/".join(parts)))) + "(/|$)"


def _example(kind: str, content: str) -> SubmissionExample:
    header, *rows = csv.reader(io.StringIO(content))
    return SubmissionExample(kind != "csv", header, rows)


def _ranges(first: str, last: str) -> list[NameRange]:
    numbers = re.compile(r"\d+")
    return [
        NameRange(first[: first_number.start()], first[first_number.end() :], int(first_number[0]), int(last_number[0]))
        for first_number, last_number in zip(numbers.finditer(first), numbers.finditer(last), strict=False)
        if (first[: first_number.start()], first[first_number.end() :])
        == (last[: last_number.start()], last[last_number.end() :])
    ]
