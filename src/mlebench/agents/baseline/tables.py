"""Finds the tables of a competition and reads them, even inside archives, up to a number of cells.

Cells are kept as the text in the file, so that `007` stays `007`. In tables from JSON a cell may be a list.
"""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import seven_zip

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".npy")
DEEPEST = 3  # folders below the data folder
MOST_FILES = 12  # tables in a folder; where there are more, each is one example
MOST_CELLS = 12_000_000
MOST_TEST_CELLS = 40_000_000  # more, because every row of a test table needs a prediction
LARGEST_WHOLE = 600 << 20  # bytes of a file that has to be read whole


@dataclass
class DataTable:
    name: str
    frame: pd.DataFrame

    @property
    def is_test(self) -> bool:
        return says(self.name, "test")


def says(name: str, side: str) -> bool:
    """Whether a name has the word: `test_v2.csv` and `en_test_2.csv` say test, `latest.csv` does not."""
    return re.search(rf"(?<![a-z]){side}", name.lower()) is not None


def read_sample(content: bytes) -> pd.DataFrame:
    """The sample submission, cell for cell."""
    frame = _texts(io.BytesIO(content), ",", None)
    header = next(csv.reader(io.StringIO(content[: 1 << 20].decode("utf-8-sig", "replace"))))
    frame.columns = pd.Index(header, dtype=object)
    return frame


def find(data: Path, sample: str) -> list[DataTable]:
    """All tables but the sample submission, whose name may have an archive's suffix. Unreadable files are skipped."""
    tables: list[DataTable] = []
    for path in _files(data, DEEPEST):
        if path in (data / sample, data / f"{sample}.zip", data / f"{sample}.7z"):
            continue
        try:
            tables += [table for table in _read(path, str(path.relative_to(data))) if len(table.frame)]
        except (OSError, ValueError, zipfile.BadZipFile, EOFError, MemoryError) as error:
            print(f"skipped {path.name}: {error}", flush=True)
    return _joined(_unique(tables))


def _files(folder: Path, depth: int) -> Iterator[Path]:
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [entry for entry in entries if entry.name.lower().endswith((*SUFFIXES, ".zip", ".7z", ".gz"))]
    files = [entry for entry in files if entry.is_file()]
    yield from files if len(files) <= MOST_FILES else ()
    folders = [entry for entry in entries if "." not in entry.name and entry.is_dir()]
    if depth and len(folders) <= MOST_FILES:
        for entry in folders:
            yield from _files(entry, depth - 1)


def _read(path: Path, name: str) -> Iterator[DataTable]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = [entry for entry in archive.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename]
            tables = [entry for entry in members if entry.filename.lower().endswith(SUFFIXES)]
            for member in tables if len(members) <= MOST_FILES else ():
                with archive.open(member) as stream:
                    yield from _parse(stream, f"{name}/{member.filename}", member.file_size)
    elif suffix == ".7z":
        if Path(path.stem).suffix.lower() in SUFFIXES and path.stat().st_size <= LARGEST_WHOLE:
            content = seven_zip.read_only_member(path)
            yield from _parse(io.BytesIO(content), name.removesuffix(path.suffix), len(content))
    elif suffix == ".gz":
        if Path(path.stem).suffix.lower() in SUFFIXES:
            with gzip.open(path) as stream:
                yield from _parse(stream, name.removesuffix(path.suffix), path.stat().st_size * 5)
    else:
        with path.open("rb") as stream:
            yield from _parse(stream, name, path.stat().st_size)


def _parse(stream: IO[bytes], name: str, size: int) -> Iterator[DataTable]:
    suffix = Path(name).suffix.lower()
    cells = MOST_TEST_CELLS if says(name, "test") else MOST_CELLS
    if suffix in (".csv", ".tsv"):
        yield DataTable(name, _texts(stream, "\t" if suffix == ".tsv" else ",", cells))
    elif suffix in (".jsonl", ".ndjson"):
        yield DataTable(name, _lines(stream, cells))
    elif size > LARGEST_WHOLE:
        raise ValueError(f"{size >> 20} MB are too many to read whole")
    elif suffix == ".npy":
        yield from _array(stream, name)
    else:
        yield from _json(stream, name)


def _texts(stream: IO[bytes], separator: str, cells: int | None) -> pd.DataFrame:
    options: dict[str, Any] = {"sep": separator, "dtype": object, "keep_default_na": False, "na_values": []}
    options |= {"encoding": "utf-8-sig", "encoding_errors": "replace", "on_bad_lines": "skip"}
    if cells is None:
        return pd.read_csv(stream, **(options | {"on_bad_lines": "error"})).fillna("")
    with pd.read_csv(stream, chunksize=20_000, **options) as chunks:
        frames: list[pd.DataFrame] = []
        for chunk in chunks:
            frames.append(chunk)
            if sum(frame.size for frame in frames) > cells:
                break
    return pd.concat(frames, ignore_index=True).fillna("")


def _lines(stream: IO[bytes], cells: int) -> pd.DataFrame:
    records: list[dict[str, Any]] = []
    size = 0
    for line in stream:
        records.append(json.loads(line))
        size += len(line)
        if len(records) * len(records[0]) > cells or size > LARGEST_WHOLE:
            break
    return _frame(records)


def _json(stream: IO[bytes], name: str) -> Iterator[DataTable]:
    """A list of objects is a table; so is each such list in an object. Lines of objects are called .json too."""
    text = stream.read()
    try:
        content = json.loads(text)
    except ValueError:
        yield DataTable(name, _lines(io.BytesIO(text), MOST_CELLS))
        return
    for key, records in content.items() if isinstance(content, dict) else [("", content)]:
        if isinstance(records, list) and records and all(isinstance(record, dict) for record in records[:100]):
            yield DataTable(f"{name}/{key}" if key else name, _frame(records))


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame([record for record in records if isinstance(record, dict)], dtype=object)
    return frame.map(_cell)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, list) and value and all(isinstance(item, int | float) for item in value):
        return value
    return value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _array(stream: IO[bytes], name: str) -> Iterator[DataTable]:
    """A matrix is a table with a row for each row; a vector is a table of one column."""
    array = np.load(stream, allow_pickle=False)
    if array.ndim in (1, 2):
        array = array.reshape(len(array), -1)[: MOST_TEST_CELLS // max(1, array[0].size)]
        yield DataTable(name, pd.DataFrame(array, columns=[f"{Path(name).stem}:{i}" for i in range(array.shape[1])]))


def _unique(tables: list[DataTable]) -> list[DataTable]:
    """Drop duplicates: the same table as a file and in an archive."""
    unique: dict[tuple[Any, ...], DataTable] = {}
    for table in tables:
        unique.setdefault((Path(table.name).name, *table.frame.columns, len(table.frame)), table)
    return [*unique.values()]


def _joined(tables: list[DataTable]) -> list[DataTable]:
    """Join tables of one file that refer to each other: `image_id` is the `id` of `images`."""
    by_name = {table.name: table for table in tables}
    for table in tables:
        folder, _, _ = table.name.rpartition("/")
        for other in tables:
            parent, _, thing = other.name.rpartition("/")
            key = f"{thing.removesuffix('s')}_id"
            if other is table or parent != folder or key not in table.frame or f"/{thing}" not in other.name:
                continue
            own = key if key in other.frame else "id"
            if own in other.frame and other.frame[own].is_unique and other.frame[own].isin(table.frame[key]).any():
                right = other.frame.rename(columns={own: key})
                right = right[[c for c in right if c == key or c not in table.frame]]
                by_name[table.name] = DataTable(table.name, table.frame.merge(right, on=key, how="left").fillna(""))
    return [*by_name.values()]
