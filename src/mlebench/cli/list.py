"""mlebench list"""

from pathlib import Path
from typing import Any

import click

from mlebench.cli.options import data_dir_option, members_of, profile_option, registry_at
from mlebench.cli.output import print_json, print_table, say
from mlebench.data.state import preparation_fault
from mlebench.registry import Competition


@click.command("list")
@click.option("--split", help="Only the competitions of a split, by name.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@data_dir_option
@profile_option
def command(split: str | None, as_json: bool, data_dir: Path | None, profile: str) -> None:
    """Show the competitions there are, and whether their data is prepared."""
    registry = registry_at(data_dir, profile)
    ids = sorted(members_of(split, registry)) if split else registry.list_competition_ids()
    rows = [_facts(registry.get_competition(id)) for id in ids]
    if as_json:
        print_json(rows)
    elif rows:
        print_table([name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows])
    elif not split:
        say(f"no competition has profile {profile} yet")


def _facts(competition: Competition) -> dict[str, Any]:
    return {
        "id": competition.id,
        "category": competition.category,
        "complexity": competition.complexity,
        "metric": competition.grader.name,
        "higher_is_better": not competition.lower_is_better,
        "prepared": preparation_fault(competition) is None,
    }
