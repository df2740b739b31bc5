"""Tables into files: each in the way that is best for where its rows come from, the result being the same."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Literal, NamedTuple

from mlebench.engine.csv.source import CsvSource
from mlebench.engine.records.source import RecordSource, write_records_in_one_pass
from mlebench.engine.tables import Quoting, Table, Writable

Advance = Callable[[int], None]


class Format(NamedTuple):
    """How a table is written: `records` are in the format of the file they come from, else in JSON lines."""

    name: Literal["csv", "tsv", "parquet", "records"] = "csv"
    quoting: Quoting = "minimal"
    float_format: str | None = None


def format_of(name: str) -> Literal["csv", "tsv", "parquet"]:
    """By the name of a file, how a table is written to it."""
    if name.endswith(".tsv"):
        return "tsv"
    return "parquet" if name.endswith(".parquet") else "csv"


class Job(NamedTuple):
    """A table, and how and where to write it."""

    table: Table
    format: Format
    open: Callable[[], AbstractContextManager[Writable]]


def write_all(jobs: Sequence[Job], scratch: Path, advance: Advance) -> None:
    """All tables, source by source: one pass over each large file, and no more than one source in memory."""
    by_source: dict[int, list[Job]] = {}
    for job in jobs:
        by_source.setdefault(id(job.table.source), []).append(job)
    for some in by_source.values():
        with ExitStack() as stack:
            _write_from_one_source([(job, stack.enter_context(job.open())) for job in some], scratch, advance)


def _write_from_one_source(jobs: list[tuple[Job, Writable]], scratch: Path, advance: Advance) -> None:
    streamed = []
    for job, stream in jobs:
        if _can_be_streamed(job):
            streamed.append((job, stream))
        else:
            _write(job, stream)
    source = jobs[0][0].table.source
    if streamed:
        if isinstance(source, CsvSource):
            source.forget()  # values that were needed to choose rows
        _stream(streamed, scratch, advance)
    else:
        advance(source.size)
    source.forget()


def _can_be_streamed(job: Job) -> bool:
    """Whether rows can go from their file to this one as they come by."""
    source = job.table.source
    if isinstance(source, CsvSource):
        return job.format.name == "csv" and bool(source.survey) and job.table.takes_rows_once
    return isinstance(source, RecordSource) and job.format.name == "records" and job.table.takes_rows_once


def _stream(jobs: list[tuple[Job, Writable]], scratch: Path, advance: Advance) -> None:
    source = jobs[0][0].table.source
    if isinstance(source, CsvSource) and source.survey:
        from mlebench.engine.csv.one_pass import TableTarget, write_in_one_pass

        targets = [
            TableTarget(job.table, stream, job.format.quoting == "nonnumeric", job.format.float_format)
            for job, stream in jobs
        ]
        write_in_one_pass(source.open, source.survey, source.sep, targets, scratch, advance)
    elif isinstance(source, RecordSource):
        write_records_in_one_pass(source, [(job.table, stream) for job, stream in jobs], scratch, advance)


def _write(job: Job, stream: Writable) -> None:
    table, format = job.table, job.format
    if format.name == "parquet":
        from mlebench.engine.parquet import write_parquet

        write_parquet(table, stream)
    elif format.name == "records":
        if isinstance(table.source, RecordSource):
            raise ValueError("a record can be written only once")
        from mlebench.engine.records.jsonlines import json_lines

        stream.write(json_lines(table.to_pandas()))
    else:
        sep = "\t" if format.name == "tsv" else ","
        table.write_csv(stream, sep=sep, quoting=format.quoting, float_format=format.float_format)
