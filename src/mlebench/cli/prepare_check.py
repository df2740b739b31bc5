"""What is still missing before competitions have their data, as a table."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from mlebench.cli.console import log_line, print_table
from mlebench.cli.quantities import size_text
from mlebench.core.errors import ConfigError
from mlebench.registry import Competition, Registry


def show_checks(registry: Registry, ids: Sequence[str], source: Any) -> None:
    """Print what is still missing before these competitions have their data."""
    from mlebench.data.preflight import check_all, free_space

    known = {*registry.list_competition_ids()}
    competitions = [competition for id in ids if id in known and (competition := _unless_broken(registry, id))]
    rows = list(check_all(competitions, source))
    header = ["competition", "data", "rules", "download", "disk at peak", "disk at end", "what to do"]
    advice, below = _said_once([row.advice for row in rows])
    print_table(
        header, [[*row[:3], *map(size_text, row[3:6]), what or "-"] for row, what in zip(rows, advice, strict=True)]
    )
    for line in below:
        click.echo(line)
    click.echo(f"{size_text(free_space(registry.get_data_dir()))} free in {registry.get_data_dir()}", err=True)
    for id in (id for id in ids if id not in known):
        registry.get_competition(id)  # raises if there is none


def _said_once(advice: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands in each row, and lines below for what several rows would repeat."""
    repeated = [text for text, count in Counter(filter(None, advice)).items() if count > 1]
    marks = {text: f"see ({number})" for number, text in enumerate(repeated, 1)}
    return [marks.get(text, text) for text in advice], [f"({i}) {text}" for i, text in enumerate(repeated, 1)]


def _unless_broken(registry: Registry, id: str) -> Competition | None:
    """One broken folder does not hide the others."""
    try:
        return registry.get_competition(id)
    except ConfigError as error:
        log_line(f"{id} is left out: {error}")
        return None
