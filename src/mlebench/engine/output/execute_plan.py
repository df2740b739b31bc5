"""Carries out plans: writes tables, contents and archives, and puts raw files straight into place."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from mlebench.core.paths import SCRATCH
from mlebench.engine.archives.write_archive import write_pack
from mlebench.engine.output.placements import Placement
from mlebench.engine.output.plan import FolderPlan, Sizes
from mlebench.engine.output.table_files import Job, format_of, write_all
from mlebench.engine.progress import SILENT, SILENT_STAGE, Progress, Stage
from mlebench.engine.tables import Table
from mlebench.engine.texts import Pieces
from mlebench.engine.threads import in_order
from mlebench.engine.trees import COPY_BYTES, FolderTree, TreeFile, create

Wanted = TypeVar("Wanted")
BATCH = 1024  # files that one worker places before it asks for more


def execute_plan(plans: Sequence[FolderPlan], scratch: Path, progress: Progress = SILENT) -> None:
    """Write and place everything planned; each plan has been checked."""
    stage = progress.stage("preparing", _weight(plans))
    with TemporaryDirectory(dir=scratch, prefix=SCRATCH) as folder:
        write_all(list(_table_jobs(plans, Path(folder))), Path(folder), stage)
        for plan in plans:
            for name, content in _unwritten(plan, plan.contents):
                with plan.create(name, stage if _known_size(content) else SILENT_STAGE) as stream:
                    for piece in content:
                        stream.write(piece)
            for name, pack in _unwritten(plan, plan.packs):
                with plan.create(name) as stream:
                    write_pack(stream, pack, Path(folder), stage)
            _place(plan, stage)
    stage.finish()


def _unwritten(plan: FolderPlan, wanted: Mapping[str, Wanted]) -> Iterator[tuple[str, Wanted]]:
    return ((name, content) for name, content in wanted.items() if not plan.is_written(name))


def _weight(plans: Sequence[FolderPlan]) -> int:
    """About how many bytes will be read from raw files or arrays; the source of several tables counts once."""
    written = [table for plan in plans for table, _ in plan.tables.values()]
    packed = [member for plan in plans for pack in plan.packs.values() for member in pack.members.values()]
    sources = {id(table.source): table.source for table in [*written, *packed] if isinstance(table, Table)}
    placed = sum(plan.placed_sizes.total for plan in plans)
    made = sum(_known_size(content) for plan in plans for content in plan.contents.values())
    files = Sizes(member for member in packed if isinstance(member, TreeFile))
    return placed + made + files.total + sum(source.size for source in sources.values())


def _known_size(content: Iterable[bytes]) -> int:
    return content.known_size or 0 if isinstance(content, Pieces) else 0


def _table_jobs(plans: Sequence[FolderPlan], scratch: Path) -> Iterator[Job]:
    for plan in plans:
        for name, (table, format) in _unwritten(plan, plan.tables):
            yield Job(table, format, lambda plan=plan, name=name: plan.create(name))
        for _, pack in _unwritten(plan, plan.packs):
            for member, content in pack.members.items():
                if isinstance(content, Table):
                    path = pack.spooled[member] = scratch / f"{id(pack)}-{len(pack.spooled)}"
                    opened = lambda path=path: create(str(path), buffering=COPY_BYTES)  # noqa: E731
                    yield Job(content, format_of(member, pack.quoting), opened)


def _place(plan: FolderPlan, stage: Stage) -> None:
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


def _place_batch(plan: FolderPlan, stage: Stage, batch: list[Placement]) -> list[int]:
    """Place some files; returns size and time of each that came from a folder. An archive knows its own."""
    linked: list[int] = []
    for name, tree, source in batch:
        path, size = plan.path(name), plan.placed_sizes.of(TreeFile(tree, source))
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
