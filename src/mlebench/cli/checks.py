"""What is still missing before competitions have their data, as a table."""

from collections.abc import Sequence
from typing import Any

import click

from mlebench.cli.output import print_table, say, size_text
from mlebench.errors import ConfigError
from mlebench.registry import Competition, Registry


def show_checks(registry: Registry, ids: Sequence[str], source: Any) -> None:
    """Print what is still missing before these competitions have their data."""
    from mlebench.data.preflight import check_all, free_space

    known = {*registry.list_competition_ids()}
    competitions = [found for id in ids if id in known and (found := _unless_broken(registry, id))]
    rows = list(check_all(competitions, source))
    header = ["competition", "data", "rules", "download", "disk at peak", "disk at end", "what to do"]
    print_table(header, [[*row[:3], *map(size_text, row[3:6]), row.advice or "-"] for row in rows])
    click.echo(f"{size_text(free_space(registry.get_data_dir()))} free in {registry.get_data_dir()}", err=True)
    for id in (id for id in ids if id not in known):
        registry.get_competition(id)  # raises if there is none


def _unless_broken(registry: Registry, id: str) -> Competition | None:
    """One broken folder does not hide the others."""
    try:
        return registry.get_competition(id)
    except ConfigError as error:
        say(f"{id} is left out: {error}")
        return None
