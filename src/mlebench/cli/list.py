"""mlebench list"""

from pathlib import Path
from typing import Any

import click

from mlebench.cli.console import log_line, print_json, print_table
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import data_dir_option, json_option, members_of, profile_option, registry_at, splits_option
from mlebench.cli.quantities import size_text
from mlebench.core.errors import PrerequisiteError
from mlebench.data.state import preparation_fault, read_manifest_head
from mlebench.registry import Competition


@click.command("list")
@splits_option
@click.option("--wide", is_flag=True, help="All columns, even if they take more than 80 characters.")
@json_option
@data_dir_option
@profile_option
def command(splits: tuple[str, ...], wide: bool, as_json: bool, data_dir: Path | None, profile: str) -> None:
    """List the competitions, their sizes, and whether their data is prepared.

    The size is that of the prepared data or, before it is prepared, of the raw data, if published.
    """
    registry = registry_at(data_dir, profile)
    chosen = {id for split in splits for id in members_of(split, registry)}
    ids = sorted(chosen) if splits else registry.list_competition_ids()
    competitions: list[Competition] = []
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for id in ids:
        try:
            competition = registry.get_competition(id)
            rows.append(_facts(competition))
            competitions.append(competition)
        except PrerequisiteError as error:
            broken.append(f"{id} is left out: {error}")
    if as_json:
        print_json(rows)
    elif rows:
        _show(rows, [_size(competition) for competition in competitions], wide)
    elif not splits and not broken:
        log_line(f"no competition has profile {profile} yet")
    for fault in [*broken, *(f"search path: {fault}" for fault in registry.search_path_faults())]:
        log_line(fault)
    if broken:
        raise SystemExit(FAILED)


def _facts(competition: Competition) -> dict[str, Any]:
    return {
        "id": competition.id,
        "category": competition.category,
        "complexity": competition.complexity,
        "metric": competition.grader.name,
        "higher_is_better": not competition.lower_is_better,
        "prepared": preparation_fault(competition) is None,
    }


def _show(rows: list[dict[str, Any]], sizes: list[str], wide: bool) -> None:
    if wide:
        header = [name.replace("_", " ") for name in rows[0]]
        print_table([*header, "size"], [[*row.values(), size] for row, size in zip(rows, sizes, strict=True)])
        return
    columns = ("id", "complexity", "prepared")
    cells = [[*(row[name] for name in columns), size] for row, size in zip(rows, sizes, strict=True)]
    # The longest id takes 56 characters; competitions of one complexity are a split of that name.
    print_table(["id", "split", "ready", "size"], cells)


def _size(competition: Competition) -> str:
    """The size of the prepared data, or else of the raw data."""
    if head := read_manifest_head(competition):
        return size_text(head.bytes)
    return size_text(None if competition.size_gb is None else round(competition.size_gb * 1e9))
