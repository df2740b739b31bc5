"""mlebench inspect"""

from pathlib import Path

import click

from mlebench import paths
from mlebench.cli.groups import VerbGroup
from mlebench.cli.inspect_failures import failures
from mlebench.cli.inspect_familiarity import familiarity
from mlebench.cli.inspect_plagiarism import plagiarism
from mlebench.cli.inspect_rules import rules
from mlebench.cli.options import data_dir_option, registry_at
from mlebench.cli.runs import runs_dir_option


@click.group(cls=VerbGroup)
@runs_dir_option
@data_dir_option
@click.pass_context
def command(context: click.Context, runs_dir: Path | None, data_dir: Path | None) -> None:
    """Find out what agents did: how runs failed, which rules they broke, what code they share, what models knew."""
    context.obj = runs_dir or paths.default_runs_dir(registry_at(data_dir).get_data_dir())


command.add_command(failures)
command.add_command(familiarity)
command.add_command(plagiarism)
command.add_command(rules)
