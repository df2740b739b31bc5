"""The command line: one module per verb, imported when that verb is used. No logic lives here."""

import importlib
import logging
import sys
from typing import Any

import click

from mlebench import __version__
from mlebench.errors import PrerequisiteError, UnknownCompetitionError

VERBS = {
    "demo": "See the whole path work, on synthetic data: make, prepare, run, grade.",
    "dev": "For those who maintain competitions.",
    "doctor": "Look over this machine and say what to do.",
    "grade": "Grade many submissions, named in a JSON-lines file.",
    "grade-sample": "Grade one submission; the report is JSON on stdout.",
    "list": "Show the competitions there are.",
    "prepare": "Turn raw data into what agents and graders need.",
    "show": "Show what is known about one competition.",
    "twin": "Make synthetic raw data in a competition's exact layout.",
    "validate": "Check a submission's format, without the answers.",
}


class _UsageFailure(click.ClickException):
    exit_code = 2


class VerbGroup(click.Group):
    """Lists the verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"mlebench.cli.{cmd_name.replace('-', '_')}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        _talk_on_stderr()
        try:
            return super().invoke(ctx)
        except PrerequisiteError as error:
            usage = isinstance(error, UnknownCompetitionError)
            raise (_UsageFailure if usage else click.ClickException)(str(error)) from error


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mlebench")
def main() -> None:
    """Measure how well AI agents do machine-learning engineering."""


class _Formatter(logging.Formatter):
    """Clients find the report on combined output by its braces, so log lines have none."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("{", "(").replace("}", ")")


def _talk_on_stderr() -> None:
    talk = logging.getLogger("mlebench")
    if not talk.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter("[%(asctime)s] %(message)s", "%H:%M:%S"))
        talk.addHandler(handler)
        talk.setLevel(logging.INFO)
        talk.propagate = False
