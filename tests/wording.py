"""What a description names: files, columns and the example of a submission.

The conventions are those of docs/add-a-competition.md: names stand in backticks, `<…>` and `*` in them for anything,
and two names with `to` or `…` between them for all numbers from one to the other.
"""

import csv
import io
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`([^`\n]+)`")
RANGE = re.compile(r"`([^`\n]+)`(?:,| to| …|\s)*\s(?:to|…)\s+`([^`\n]+)`")
ONWARD = re.compile(r"`([^`\n]+)`,? (?:…|and so on)")
PLACEHOLDER = re.compile(r"<[^<>/]*>|\*")


@dataclass(frozen=True)
class Example:
    """A block of code that shows a submission; a sketch does not show all of it."""

    is_sketch: bool
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Wording:
    text: str

    @cached_property
    def examples(self) -> list[Example]:
        submission = self.text.partition("\n## Submission\n")[2].partition("\n## ")[0]
        return [_example(kind, content) for kind, content in FENCED.findall(submission)]

    def names_column(self, column: str) -> bool:
        return self._names(column) or any(column in example.header for example in self.examples)

    def names_file(self, path: str) -> bool:
        """Some end of the path is named, and so is the folder that is left over."""
        parts = PurePosixPath(path).parts
        return any(
            self._names("/".join(parts[start:])) and (not start or self._names_folder("/".join(parts[:start])))
            for start in range(len(parts))
        )

    def _names_folder(self, path: str) -> bool:
        return self.names_file(path) or self.names_file(f"{path}/")

    def _names(self, name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in self._patterns) or any(
            first <= number <= last and len(digits) >= width
            for before, after, first, last, width in self._ranges
            if name.startswith(before) and name.endswith(after)
            if (digits := name[len(before) : len(name) - len(after)]).isdecimal()
            for number in [int(digits)]
        )

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        prose = FENCED.sub("", self.text)
        names = [re.escape(name) for name in NAME.findall(prose)]
        names = [re.sub(r"<[^<>/]*>|\\\*", "[^/]+", name) for name in names]
        names += [re.sub(r"\d+", r"\\d+", re.escape(name)) for name in ONWARD.findall(prose)]
        return [re.compile(f"{name}/?" ) for name in names]

    @cached_property
    def _ranges(self) -> list[tuple[str, str, int, int, int]]:
        return [between for pair in RANGE.findall(FENCED.sub("", self.text)) if (between := _range(*pair))]


def _example(kind: str, content: str) -> Example:
    header, *rows = csv.reader(io.StringIO(content))
    return Example(kind != "csv", header, rows)


def _range(first: str, last: str) -> tuple[str, str, int, int, int] | None:
    """What stands before and after the number in which two names differ, and the two numbers."""
    for start, end in ((match.start(), match.end()) for match in re.finditer(r"\d+", first)):
        before, after = first[:start], first[end:]
        number = last[len(before) : len(last) - len(after)]
        if last.startswith(before) and last.endswith(after) and number.isdecimal():
            return before, after, int(first[start:end]), int(number), 1
    return None
