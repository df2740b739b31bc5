"""How a verb and its subcommands are run: log, errors, exit code."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from mlebench.cli.console import log_line, mask_braces
from mlebench.cli.exit_codes import FAILED, USAGE
from mlebench.cli.verbs import hint
from mlebench.core.errors import PrerequisiteError, RequestError, UnknownCompetitionError, UnknownSplitError


class _ToStderr(logging.StreamHandler[Any]):
    """Writes to the current stderr: while bars are shown, lines go above them."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # `setStream` would flush the previous stream, which may be closed
        super().emit(record)


class _WithoutBraces(logging.Formatter):
    """Clients find the report on combined output by its braces, so log lines have none.

    Nor do they have escape codes, which an agent could smuggle to a terminal in a column name.
    """

    def format(self, record: logging.LogRecord) -> str:
        return mask_braces(super().format(record))


def run_verb(command: click.Command, verb: str, arguments: list[str]) -> None:
    """Run a command; an error that the person at the keyboard can fix becomes one line, without a traceback."""
    talk = logging.getLogger("mlebench")
    if not talk.handlers:
        handler = _ToStderr()
        handler.setFormatter(_WithoutBraces("[%(asctime)s] %(message)s", "%H:%M:%S"))
        talk.addHandler(handler)
        talk.setLevel(logging.INFO)
        talk.propagate = False
    try:
        with command.make_context(f"mlebench {verb}", arguments, help_option_names=["-h", "--help"]) as context:
            command.invoke(context)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except PrerequisiteError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(USAGE if isinstance(error, RequestError | UnknownCompetitionError | UnknownSplitError) else FAILED)


def _show(error: click.ClickException) -> None:
    """One line, where click would print the usage above it; a group that is named alone shows its help."""
    if not isinstance(error, click.UsageError) or not error.ctx or type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    message = error.format_message()
    end = "" if message.endswith((".", "?", "?)")) else "."
    log_line(f"Error: {message}{end} See `{error.ctx.command_path} --help`.")


class Failures:
    """Lets other items continue when one fails, and ends with an exit code."""

    def __init__(self) -> None:
        self._errors: list[PrerequisiteError] = []
        self._tried = 0

    @contextmanager
    def of(self, item: str) -> Iterator[None]:
        self._tried += 1
        try:
            yield
        except PrerequisiteError as error:
            self._errors.append(error)
            log_line(f"{item}: failed")

    def finish(self) -> None:
        if not self._errors:
            return
        if self._tried == 1:
            raise self._errors[0]
        lines = "\n".join(f"  {error}" for error in self._errors)
        raise PrerequisiteError(f"{len(self._errors)} of {self._tried} failed:\n{lines}")


def refuse_json_before(context: click.Context, as_json: bool) -> None:
    """--json of a verb is not that of its commands."""
    if as_json and context.invoked_subcommand:
        raise click.UsageError(f"--json belongs after `{context.invoked_subcommand}`", context)


class VerbGroup(click.Group):
    """Suggests the command that was probably meant, as `mlebench` itself does; not every version of click does."""

    otherwise = ""  # what to say if no command is near

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            those = self.otherwise or f"choose from {', '.join(sorted(self.commands))}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint(args[0], self.commands, those)}", ctx)
        return super().resolve_command(ctx, args)
