"""Descriptions tell the truth: what they show is accepted, and what an agent finds is named."""

import csv
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import bson
import pandas as pd
import pytest
from fingerprints import members_of
from golden_cases import Case
from wording import Example, Wording

from mlebench.kit import public_sample_bytes
from mlebench.validate import validate_format

ELLIPSES = ("...", "…")

# Archives of other data sets, which come along as they are; descriptions only say what they are.
NOT_EXPLAINED = ("devel01-40.7z", "valid_all_files_combined.7z", "sample_code_mmrgc.zip")


@pytest.fixture
def wording(twin: Case) -> Wording:
    return Wording(twin.competition.obfuscated_description)


def test_example_of_a_submission_is_accepted(twin: Case, wording: Wording, tmp_path: Path) -> None:
    (example,) = wording.examples
    sample = list(csv.DictReader(io.StringIO(public_sample_bytes(twin.competition).decode())))
    assert len(example.rows) <= len(sample)
    if example.is_sketch:
        assert "sketch" in wording.text
        example = _filled_in(example, list(sample[0]))
        if not example.rows:
            return
    targets = twin.competition.submission["targets"]
    with (tmp_path / "submission.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, example.header, extrasaction="ignore")
        writer.writeheader()
        for row, shown in zip(sample, itertools.cycle(example.rows), strict=False):
            values = dict(zip(example.header, shown, strict=True))
            writer.writerow(row | {name: values[name] for name in targets})
    assert validate_format(tmp_path / "submission.csv", twin.competition) == (True, "Submission is valid.")


def _filled_in(sketch: Example, columns: list[str]) -> Example:
    """A sketch with the columns that it leaves out, and those of its rows that go on as they begin."""
    place = next((place for place, name in enumerate(sketch.header) if name in ELLIPSES), len(sketch.header))
    after = sketch.header[place + 1 :]
    assert sketch.header[:place] + after == columns[:place] + columns[len(columns) - len(after) :]
    even = [row for row in sketch.rows if place < len(row) and len({*row[1:]} - {*ELLIPSES}) == 1]
    return Example(True, columns, [[row[0], *[row[1]] * (len(columns) - 1)] for row in even])


def test_files_are_named(twin: Case, wording: Wording) -> None:
    names = {name for name, _ in _public_files(twin.competition.public_dir)}
    assert {name for name in names if not wording.names_file(name)} == set()


def test_columns_are_named(twin: Case, wording: Wording) -> None:
    targets = twin.competition.submission["targets"] if wording.has_a_column_for_each_class else []
    unnamed = {
        (column, name)
        for name, content in _public_files(twin.competition.public_dir)
        for column in _columns(name, content)
        if column not in targets and not wording.names_column(column)
    }
    assert unnamed == set()


def _public_files(public: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, and what is in archives, by the paths that they have when archives are unpacked beside themselves."""
    for path in sorted(path for path in public.rglob("*") if path.is_file()):
        name, content = path.relative_to(public).as_posix(), path.read_bytes()
        if name == "description.md":
            continue
        yield name, content
        for member, inner in (members_of(content) or {}).items():
            if not member.endswith("/") and name not in NOT_EXPLAINED:
                yield member, inner


def _columns(name: str, content: bytes) -> list[str]:
    """Names of columns, or of the fields of records."""
    if name.endswith(".csv"):
        return next(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    if name.endswith(".tsv"):
        return content.decode().partition("\n")[0].rstrip("\r").split("\t")
    if name.endswith(".parquet"):
        return list(pd.read_parquet(io.BytesIO(content)))
    if name.endswith(".jsonl"):
        return list(json.loads(content.partition(b"\n")[0]))
    if name.endswith(".bson"):
        return list(bson.decode_all(content)[0])
    return _fields(content) if name.endswith(".json") else []


def _fields(content: bytes) -> list[str]:
    """Fields of an object and of the records in its lists; numbers are no names, but codes that are explained."""
    try:
        document = json.loads(content)
    except ValueError:  # JSON lines
        document = json.loads(content.partition(b"\n")[0])
    parts = document.values() if isinstance(document, dict) else [document]
    records = [record for part in parts if isinstance(part, list) for record in part if isinstance(record, dict)]
    names = [*(document if isinstance(document, dict) else []), *(name for record in records for name in record)]
    return [name for name in dict.fromkeys(names) if not name.isdecimal()]
