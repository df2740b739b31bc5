"""Tables into files: each source writes its own, in one pass over a large file."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

from mlebench.engine.parquet import ParquetFormat
from mlebench.engine.progress import Stage
from mlebench.engine.tables import CsvFormat, Format, Quoting, Table, Target, Writable


def format_of(name: str, quoting: Quoting = "minimal", float_format: str | None = None) -> Format:
    """How a table is written to a file of this name."""
    if name.endswith(".parquet"):
        return ParquetFormat()
    return CsvFormat(quoting, float_format, "\t" if name.endswith(".tsv") else ",")


class Job(NamedTuple):
    """A table, and how and where to write it."""

    table: Table
    format: Format
    open: Callable[[], AbstractContextManager[Writable]]


def write_all(jobs: Sequence[Job], scratch: Path, stage: Stage) -> None:
    """All tables, source by source: one pass over each large file, and no more than one source in memory."""
    by_source: dict[int, list[Job]] = {}
    for job in jobs:
        by_source.setdefault(id(job.table.source), []).append(job)
    for some in by_source.values():
        source = some[0].table.source
        with ExitStack() as stack:
            targets = [Target(job.table, job.format, stack.enter_context(job.open())) for job in some]
            source.write(targets, scratch, stage)
        source.forget()
