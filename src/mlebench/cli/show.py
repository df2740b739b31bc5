"""mlebench show"""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mlebench.cli.console import cell, print_json
from mlebench.cli.options import data_dir_option, json_option, profile_option, registry_at
from mlebench.config import RELEASES, CompetitionConfig
from mlebench.data.state import preparation_fault, source_kind, twin_elsewhere
from mlebench.registry import Competition
from mlebench.scoring import Thresholds, read_leaderboard


@click.command()
@click.argument("competition_id")
@json_option
@click.option(
    "--description",
    type=click.Choice(["ours", "obfuscated"]),
    help="Print the description instead; the obfuscated one does not name the original competition.",
)
@data_dir_option
@profile_option
def command(competition_id: str, as_json: bool, description: str | None, data_dir: Path | None, profile: str) -> None:
    """Show what is known about one competition: facts, medal thresholds, data, known issues."""
    competition = registry_at(data_dir, profile).get_competition(competition_id)
    if description:
        text = competition.description if description == "ours" else competition.obfuscated_description
        click.echo(text, nl=False)
        return
    facts = _facts(competition)
    if as_json:
        print_json(facts)
        return
    facts["known_issues"] = list(map(str, competition.known_issues))
    width = max(map(len, facts))
    for name, value in facts.items():
        for line in value if isinstance(value, list) else [value]:
            click.echo(f"{name.replace('_', ' ').ljust(width)}  {cell(line)}")
            name = ""


def _facts(competition: Competition) -> dict[str, Any]:
    board, sample = read_leaderboard(competition.leaderboard), competition.sample_score
    if fault := preparation_fault(competition):
        fault += twin_elsewhere([competition])
    return {
        "id": competition.id,
        "name": competition.name,
        "category": competition.category,
        "complexity": competition.complexity,
        "deadline": competition.deadline and competition.deadline.isoformat(),
        "metric": competition.grader.name,
        "higher_is_better": not competition.lower_is_better,
        "teams": len(board),
        **Thresholds.of(board).withholding(competition.medals_withheld)._asdict(),
        "board": competition.board,
        "medals_withheld": list(competition.medals_withheld),
        "sample_score": sample if sample is not None and not math.isnan(sample) else None,  # JSON has no NaN
        "profile": competition.profile,
        "version": competition.version,
        "release": RELEASES.get(competition.profile),
        "checked_on": competition.checked_on,
        "prepared": fault is None,
        "data": f"{source_kind(competition)} data in {competition.paths.prepared}" if fault is None else fault,
        "description": str(CompetitionConfig.load(competition.folder, competition.profile).description_file),
        "known_issues": [asdict(issue) for issue in competition.known_issues],
    }
