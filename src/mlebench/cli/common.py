"""What verbs share: options, output, progress."""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from mlebench import paths
from mlebench.cli.codes import FAILED, USAGE
from mlebench.errors import ConfigError, PrerequisiteError, UnknownCompetitionError, UnknownSplitError
from mlebench.registry import Competition, Registry
from mlebench.untrusted import LARGEST_SUBMISSION

Item = TypeVar("Item")


class _ToStderr(logging.StreamHandler[Any]):
    """Writes to what is stderr at that time: while bars are shown, lines go above them."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # `setStream` would flush the one before, which may be closed
        super().emit(record)


class _WithoutBraces(logging.Formatter):
    """Clients find the report on combined output by its braces, so log lines have none.

    Nor have they escape codes, which an agent could send to a terminal in the name of a column.
    """

    def format(self, record: logging.LogRecord) -> str:
        return without_braces(super().format(record))


def without_braces(text: str) -> str:
    text = text.replace("{", "(").replace("}", ")")
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]


def run_verb(command: click.Command, verb: str, arguments: list[str]) -> None:
    """Run a command; what the person at the keyboard has to mend becomes one line, without a traceback."""
    talk = logging.getLogger("mlebench")
    if not talk.handlers:
        handler = _ToStderr()
        handler.setFormatter(_WithoutBraces("[%(asctime)s] %(message)s", "%H:%M:%S"))
        talk.addHandler(handler)
        talk.setLevel(logging.INFO)
        talk.propagate = False
    try:
        with command.make_context(f"mlebench {verb}", arguments) as context:
            command.invoke(context)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except PrerequisiteError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(USAGE if isinstance(error, UnknownCompetitionError | UnknownSplitError) else FAILED)


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--strict", is_flag=True, help="Exit code 1 also for an invalid or missing submission.")(
        command
    )
    return click.option(
        "--max-bytes",
        "limit",
        type=click.IntRange(min=1),
        default=LARGEST_SUBMISSION,
        show_default=True,
        help="Largest submission that is read; a larger one is invalid.",
    )(command)


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, readable=False, path_type=Path),
    help=f"Where the data lies. Default: ${paths.DATA_DIR_VARIABLE}, or a folder in the user's cache.",
)


profile_option = click.option(
    "--profile",
    type=click.Choice(paths.PROFILES),
    default=paths.PROFILES[0],
    show_default=True,
    help="v1: as the reference. v2: corrected data and graders, where a competition has them.",
)


def registry_at(data_dir: Path | None, profile: str = paths.PROFILES[0], *, twin: bool = False) -> Registry:
    return Registry(data_dir or paths.default_data_dir(twin=twin), profile)


def members_of(split: str, registry: Registry) -> list[str]:
    """The competitions of a split that there are in the registry's profile; says how many there are not."""
    members, known = registry.get_split(split), set(registry.list_competition_ids())
    if missing := [id for id in members if id not in known]:
        say(
            f"{len(missing)} of the {len(members)} competitions of split {split} have no profile {registry.profile} yet"
        )
    return [id for id in members if id in known]


def twin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    size = click.FloatRange(min=0, min_open=True)
    command = click.option("--size", type=size, default=1.0, show_default=True, help="Scale of a twin's files.")(
        command
    )
    return click.option("--seed", default=0, show_default=True, help="Seed of a twin.")(command)


def print_json(value: Any) -> None:
    """Machine output. Braces inside strings are escaped, so that the outermost pair is easy to find in a log."""
    text = json.dumps(value, indent=4)
    if isinstance(value, dict):
        inner = text[1:-1]
        if not any(isinstance(item, dict | list) for item in value.values()):
            inner = inner.replace("{", "\\u007b").replace("}", "\\u007d")
        text = f"{text[0]}{inner}{text[-1]}"
    click.echo(text)


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    for line in table_lines(header, rows):
        click.echo(line)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Columns in plain text."""
    cells = [list(header), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks at it; a stream that was closed when the program began is None."""
    return stream is not None and stream.isatty()


def say(text: str) -> None:
    """A line on stderr, above bars where there are any: what click takes for stderr by itself is below them."""
    click.echo(text, file=sys.stderr)


def track(items: Sequence[Item], describe: Callable[[Item], str]) -> Iterator[Item]:
    """Go through items and, on a terminal, show how far along we are."""
    if not is_terminal(sys.stderr):
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console, to_terminal = Console(stderr=True), is_terminal(sys.stdout)
    with Progress(*columns, console=console, transient=True, redirect_stdout=to_terminal) as progress:
        task = progress.add_task("", total=len(items))
        for item in items:
            progress.update(task, description=describe(item))
            yield item
            progress.advance(task)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Say, on a terminal, what takes its time."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def show_checks(registry: Registry, ids: Sequence[str], source: Any) -> None:
    """A table of what stands between these competitions and their data."""
    from mlebench.data.preflight import check_all, free_space

    known = {*registry.list_competition_ids()}
    competitions = [found for id in ids if id in known and (found := _unless_broken(registry, id))]
    rows = list(check_all(competitions, source))
    header = ["competition", "data", "rules", "download", "disk at peak", "disk at end", "what to do"]
    print_table(header, [[*row[:3], *map(size_text, row[3:6]), row.advice or "-"] for row in rows])
    click.echo(f"{size_text(free_space(registry.get_data_dir()))} are free in {registry.get_data_dir()}", err=True)
    for id in (id for id in ids if id not in known):
        registry.get_competition(id)  # says that there is none


def _unless_broken(registry: Registry, id: str) -> Competition | None:
    """One broken folder does not hide the others."""
    try:
        return registry.get_competition(id)
    except ConfigError as error:
        say(f"{id} is left out: {error}")
        return None


UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(size: int | None) -> str:
    """A number of bytes, for people."""
    if size is None:
        return "-"
    power = _power(size)
    return f"{size / 1000**power:.3g} {UNITS[power]}"


def amount_text(done: int, total: int | None, *, more: bool = False) -> str:
    """How many bytes of how many, for people; `more` says that the total is not all."""
    if total is None:
        return size_text(done)
    power = _power(total)
    places = 1 if power else 0
    return f"{done / 1000**power:.{places}f} of {total / 1000**power:.{places}f}{'+' * more} {UNITS[power]}"


def _power(size: int) -> int:
    """Which unit: three digits of it are enough, also when they are rounded."""
    return next((power for power in range(len(UNITS) - 1) if size < 999.5 * 1000**power), len(UNITS) - 1)


class Failures:
    """Goes on with the others when one item fails; the last word is an exit code."""

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
            say(f"{item}: failed")

    def finish(self) -> None:
        if not self._errors:
            return
        if self._tried == 1:
            raise self._errors[0]
        lines = "\n".join(f"  {error}" for error in self._errors)
        raise PrerequisiteError(f"{len(self._errors)} of {self._tried} failed:\n{lines}")


def cell(value: Any) -> str:
    """A value in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
