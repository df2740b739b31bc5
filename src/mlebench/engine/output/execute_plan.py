"""Carries out plans: writes tables, contents and archives, and puts raw files straight into place."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import islice
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from mlebench.core.paths import SCRATCH
from mlebench.engine.archives.write_archive import write_pack
from mlebench.engine.byte_chunks import ByteChunks
from mlebench.engine.output.folder_plan import FolderPlan, Sizes
from mlebench.engine.output.placements import Placement
from mlebench.engine.parquet import ParquetFormat
from mlebench.engine.progress import SILENT, SILENT_STAGE, Progress, Stage
from mlebench.engine.tables import CsvFormat, Format, Quoting, Table, TableOutput, Writable
from mlebench.engine.threads import in_order
from mlebench.engine.trees import COPY_BYTES, FolderTree, TreeFile, create

Wanted = TypeVar("Wanted")
BATCH = 1024  # files that one worker places before it asks for more


class TableFile(NamedTuple):
    """A table, and how and where to write it."""

    table: Table
    format: Format
    open: Callable[[], AbstractContextManager[Writable]]


def execute_plan(plans: Sequence[FolderPlan], scratch: Path, progress: Progress = SILENT) -> None:
    """Write and place everything planned; each plan has been checked."""
    stage = progress.stage("preparing", _weight(plans))
    with TemporaryDirectory(dir=scratch, prefix=SCRATCH) as folder:
        _write_tables(list(_table_files(plans, Path(folder))), Path(folder), stage)
        for plan in plans:
            for name, content in _unwritten(plan, plan.contents):
                with plan.create(name, stage if _known_size(content) else SILENT_STAGE) as stream:
                    for piece in content:
                        stream.write(piece)
            for name, pack in _unwritten(plan, plan.packs):
                with plan.create(name) as stream:
                    write_pack(stream, pack, Path(folder), stage)
            _place_files(plan, stage)
    stage.finish()


def format_of(name: str, quoting: Quoting = "minimal", float_format: str | None = None) -> Format:
    """How a table is written to a file of this name."""
    if name.endswith(".parquet"):
        return ParquetFormat()
    return CsvFormat(quoting, float_format, "\t" if name.endswith(".tsv") else ",")


def _unwritten(plan: FolderPlan, wanted: Mapping[str, Wanted]) -> Iterator[tuple[str, Wanted]]:
    return ((name, content) for name, content in wanted.items() if not plan.is_written(name))


def _weight(plans: Sequence[FolderPlan]) -> int:
    """About how many bytes will be read from raw files or arrays; the source of several tables counts once."""
    written = [table for plan in plans for table, _ in plan.tables.values()]
    packed = [content for plan in plans for pack in plan.packs.values() for content in pack.contents()]
    sources = {id(table.source): table.source for table in [*written, *packed] if isinstance(table, Table)}
    placed = sum(plan.placed_sizes.total for plan in plans)
    made = sum(_known_size(content) for plan in plans for content in plan.contents.values())
    files = Sizes(content for content in packed if isinstance(content, TreeFile))
    return placed + made + files.total + sum(source.size for source in sources.values())


def _known_size(content: Iterable[bytes]) -> int:
    return content.known_size or 0 if isinstance(content, ByteChunks) else 0


def _table_files(plans: Sequence[FolderPlan], scratch: Path) -> Iterator[TableFile]:
    for plan in plans:
        for name, (table, format) in _unwritten(plan, plan.tables):
            yield TableFile(table, format, lambda plan=plan, name=name: plan.create(name))
        for _, pack in _unwritten(plan, plan.packs):
            for member, content in pack.members.items():
                if isinstance(content, Table):
                    path = pack.spooled[member] = scratch / f"{id(pack)}-{len(pack.spooled)}"
                    opened = lambda path=path: create(str(path), buffering=COPY_BYTES)  # noqa: E731
                    yield TableFile(content, format_of(member, pack.quoting), opened)


def _write_tables(files: Sequence[TableFile], scratch: Path, stage: Stage) -> None:
    """Write all tables, source by source: one pass over each large file, and at most one source in memory."""
    by_source: dict[int, list[TableFile]] = {}
    for file in files:
        by_source.setdefault(id(file.table.source), []).append(file)
    for files_of_source in by_source.values():
        source = files_of_source[0].table.source
        with ExitStack() as stack:
            targets = [
                TableOutput(file.table, file.format, stack.enter_context(file.open())) for file in files_of_source
            ]
            source.write(targets, scratch, stage)
        source.forget()


def _place_files(plan: FolderPlan, stage: Stage) -> None:
    """Put raw files into place; files that an interrupted attempt already placed are left alone."""
    work = partial(_place_batch, plan, stage)
    batches = _batches(plan)
    results = in_order(batches, work) if len(plan.placed) > BATCH else ((batch, work(batch)) for batch in batches)
    for _, linked in results:
        plan.linked.extend(linked)


def _batches(plan: FolderPlan) -> Iterator[list[Placement]]:
    placements = iter(plan.placed)
    while batch := list(islice(placements, BATCH)):
        for name, _, _ in batch:
            plan.path(name)  # makes the folders
        yield batch


def _is_hidden(source: str, name: str) -> bool:
    """Whether the new name hides which raw file it was: more differs than one folder, such as `train`, now `test`."""
    old, new = source.split("/"), name.split("/")
    if new[-len(old) :] == old:
        return False
    return old[-1] != new[-1] or len(old) != len(new) or sum(map(ne, old, new)) > 1


def _place_batch(plan: FolderPlan, stage: Stage, batch: list[Placement]) -> list[int]:
    """Place some files; returns size and time of each that came from a folder. An archive knows its own."""
    linked: list[int] = []
    for name, tree, source in batch:
        path, size = plan.path(name), plan.placed_sizes.of(TreeFile(tree, source))
        if isinstance(tree, FolderTree) and _is_hidden(source, name):
            tree = tree.anonymous
        part = stage.part(size, size)
        try:
            tree.extract(source, path, part.advance)
        except FileExistsError:
            if not tree.is_extracted(source, path):
                Path(path).unlink()
                tree.extract(source, path, part.advance)
        if isinstance(tree, FolderTree):
            status = os.stat(path)  # the placed file's: its disk may store times less exactly
            linked += (status.st_size, status.st_mtime_ns)
        part.finish()
    return linked
