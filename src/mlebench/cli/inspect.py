"""mlebench inspect"""

import click

from mlebench.cli.inspect_failures import failures
from mlebench.cli.inspect_familiarity import familiarity
from mlebench.cli.inspect_plagiarism import plagiarism
from mlebench.cli.inspect_rules import rules
from mlebench.cli.invocation import VerbGroup
from mlebench.cli.options import folder_options


@click.group(cls=VerbGroup)
@folder_options
def command() -> None:
    """Find out what agents did: how runs failed, which rules they broke, what code they share, what models knew."""


command.add_command(failures)
command.add_command(familiarity)
command.add_command(plagiarism)
command.add_command(rules)
