"""Parquet: tables read column by column, written in bounded memory, and compared by what they hold.

The bytes of a parquet file depend on the library that wrote it and on its version, so two files are the same when their
columns have the same names, kinds and values: `content_hash`.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mlebench.engine.csv.cells import pc
from mlebench.engine.csv.printing import bytes_of
from mlebench.engine.frames import values_of
from mlebench.engine.progress import SILENT, SILENT_STAGE, Part, Progress, Stage
from mlebench.engine.raw_streams import WATCHED_BYTES
from mlebench.engine.tables import Column, ComputedColumn, StoredColumn, Table, TableOutput, Writable

GROUP_ROWS = 1 << 20  # rows that are read and written at a time
HASHED_ROWS = 1 << 16
# Pages are read as needed; otherwise a whole row group, which may be the whole file, would be in memory.
_IN_PAGES: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}


class ParquetSource:
    """A parquet file on disk. Columns are read on request and not kept."""

    label: str | None = None

    def __init__(self, path: Path, progress: Progress = SILENT):
        self._path = path
        self._progress = progress
        self._schema = pq.read_schema(path)
        self.rows: int = pq.read_metadata(path).num_rows
        self.size = path.stat().st_size

    @property
    def columns(self) -> list[str]:
        """The columns, without any index that pandas stored."""
        index = (self._schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in self._schema.names if name not in index]

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        if pa.types.is_temporal(self._schema.field(name).type):
            raise ValueError(f"column {name} holds dates or times, whose values are not read yet")
        # pandas types whole columns: a gap anywhere makes floats of whole numbers.
        if rows is not None and (not _are_ascending(rows) or self._has_gaps(name)):
            return self.values(name)[rows]
        report = self._reading(name)
        pieces = [group.column(0) for group, _ in self.groups([name], rows, report)]
        report.finish()
        return values_of(pa.chunked_array(pieces, self._schema.field(name).type).to_pandas())

    def _reading(self, name: str) -> Part:
        """What is reported about reading a column: nothing if the file is small."""
        if self.size < WATCHED_BYTES:
            return SILENT_STAGE.part(0, self.rows)
        metadata = pq.read_metadata(self._path)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        columns = [group.column(index) for group in groups for index in range(group.num_columns)]
        # A record has a column for each of its fields.
        own = [column for column in columns if column.path_in_schema.partition(".")[0] == name]
        size = sum(column.total_compressed_size for column in own)
        return self._progress.stage("reading", size).part(size, self.rows)

    def _has_gaps(self, name: str) -> bool:
        if pa.types.is_floating(self._schema.field(name).type):
            return False
        with pq.ParquetFile(self._path, **_IN_PAGES) as file:
            groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
            known = [
                group.column(index).statistics
                for group in groups
                for index in range(group.num_columns)
                if group.column(index).path_in_schema == name
            ]
            if len(known) == len(groups) and all(facts is not None and facts.has_null_count for facts in known):
                return any(facts.null_count for facts in known)
            return any(group.column(0).null_count for group in file.iter_batches(GROUP_ROWS, columns=[name]))

    def groups(
        self, names: list[str], rows: np.ndarray | None, report: Part
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Columns of ascending rows, or of all, in batches, each with the places of its rows."""
        if rows is not None and len(rows) and rows[-1] >= self.rows:
            raise IndexError(f"there is no row {rows[-1]} in a file of {self.rows}")
        start = 0
        with pq.ParquetFile(self._path, **_IN_PAGES) as file:
            for group in file.iter_batches(GROUP_ROWS, columns=names):
                end = start + group.num_rows
                if rows is None:
                    yield group, np.arange(start, end)
                else:
                    first, last = np.searchsorted(rows, [start, end])
                    yield group.take(pa.array(rows[first:last] - start)), np.arange(first, last)
                start = end
                report.advance(group.num_rows)

    def write(self, targets: Sequence[TableOutput], scratch: Path, stage: Stage) -> None:  # noqa: ARG002
        work = sum(self.rows + len(target.table) for target in targets)
        report = stage.part(self.size, work)
        for target in targets:
            if target.format.name == ParquetFormat.name:
                _write(self._pieces(target.table, report), target.stream)
            else:
                target.format.write(target.table, target.stream, report.advance)
                report.advance(self.rows)
        report.finish()

    def _pieces(self, table: Table, report: Part) -> Iterator[pa.Table]:
        """A table's rows; in file order they are streamed in batches."""
        added = {name: _added(column, len(table)) for name, column in table.definitions.items()}
        stored = [column.name for column in table.definitions.values() if isinstance(column, StoredColumn)]
        if self.rows and (table.rows is None or _are_ascending(table.rows)):
            groups = self.groups(stored, table.rows, report)
        else:
            groups = self._reordered(stored, table, report)
        for group, places in groups:
            yield pa.table({name: _column(c, group, added[name], places) for name, c in table.definitions.items()})
            report.advance(len(places))

    def _reordered(self, names: list[str], table: Table, report: Part) -> Iterator[tuple[pa.Table, np.ndarray]]:
        """Rows in any order; the columns are read into memory."""
        schema = pa.schema([field for field in self._schema if field.name in names])  # in the order of the file
        taken = pa.Table.from_batches([group for group, _ in self.groups(names, None, report)], schema)
        if table.rows is not None:
            taken = taken.take(pa.array(table.rows))
        for start in range(0, max(1, len(table)), GROUP_ROWS):
            places = np.arange(start, min(start + GROUP_ROWS, len(table)))
            yield taken.slice(start, GROUP_ROWS), places

    def forget(self) -> None:
        """Nothing is kept."""


class ParquetFormat:
    name = "parquet"

    def write(self, table: Table, stream: Writable, advance: Callable[[float], None]) -> None:
        _write(iter([pa.Table.from_pandas(table.to_pandas(), preserve_index=False).replace_schema_metadata()]), stream)
        advance(len(table))


def _write(pieces: Iterator[pa.Table], stream: Writable) -> None:
    first = next(pieces)
    with pq.ParquetWriter(pa.PythonFile(stream, "w"), first.schema) as writer:
        writer.write_table(first, GROUP_ROWS)
        for piece in pieces:
            writer.write_table(piece.cast(first.schema), GROUP_ROWS)


def _added(column: Column, rows: int) -> Any:
    """A column that the file does not have, as a whole, so that it has one type."""
    if isinstance(column, StoredColumn):
        return None
    return pa.array(column.values if isinstance(column, ComputedColumn) else [column.value] * rows, from_pandas=True)


def _column(column: Column, group: Any, added: Any, places: np.ndarray) -> Any:
    return group.column(column.name) if isinstance(column, StoredColumn) else added.take(pa.array(places))


def _are_ascending(rows: np.ndarray) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


def content_hash(source: Path | BinaryIO, stage: Stage = SILENT_STAGE) -> str:
    """A hash of the names, kinds and values of all columns, however they are encoded; the stage is the file."""
    with pq.ParquetFile(source, **_IN_PAGES) as file:
        content = _ContentHashes()
        part = stage.part(stage.total or 0, file.metadata.num_rows)
        for group in file.iter_batches(HASHED_ROWS):
            for name, column in zip(group.schema.names, group.columns, strict=True):
                content.add(f"/{name}", column)
            part.advance(group.num_rows)
        facts = [
            (name, _kind(kind)) for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types, strict=True)
        ]
        summary = [
            facts,
            file.metadata.num_rows,
            sorted((path, hash.hexdigest()) for path, hash in content.hashes.items()),
        ]
    return hashlib.md5(json.dumps(summary).encode(), usedforsecurity=False).hexdigest()


class _ContentHashes:
    """Hashes of the plain values that columns fall into, such as the lengths of texts and their letters."""

    def __init__(self) -> None:
        self.hashes: defaultdict[str, Any] = defaultdict(lambda: hashlib.md5(usedforsecurity=False))

    def add(self, path: str, array: pa.Array) -> None:
        kind = array.type
        if pa.types.is_dictionary(kind):
            self.add(path, array.dictionary_decode())
        elif pa.types.is_floating(kind):
            values = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
            self._update(path, np.where(np.isnan(values), np.nan, values))  # make gaps and all NaNs the same NaN
        else:
            self._update(f"{path}?", array.is_null().to_numpy(zero_copy_only=False).astype(np.uint8))
            self._add_parts(path, array)

    def _add_parts(self, path: str, array: pa.Array) -> None:
        kind = array.type
        if pa.types.is_struct(kind):
            for field, part in zip(kind, array.flatten(), strict=True):
                self.add(f"{path}/{field.name}", part)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            self._update(f"{path}#", pc.list_value_length(array).fill_null(0).to_numpy().astype(np.int64))
            self.add(f"{path}/[]", array.flatten())
        elif _is_text(kind):
            texts = array.cast(pa.large_binary()).fill_null(b"")
            self._update(f"{path}#", pc.binary_length(texts).to_numpy().astype(np.int64))
            self._update(path, bytes_of(texts))
        elif pa.types.is_boolean(kind):
            self._update(path, array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8))
        elif pa.types.is_integer(kind):
            self._update(path, array.fill_null(0).to_numpy())
        elif pa.types.is_null(kind):
            return
        else:  # dates, times, decimals
            self._add_parts(path, array.cast(pa.large_string()))

    def _update(self, path: str, values: Any) -> None:
        self.hashes[path].update(values)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {_kind(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"record of {[(field.name, _kind(field.type)) for field in kind]}"
    return "text" if _is_text(kind) else str(kind)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_one(kind)
        for is_one in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )
