"""The console of verbs: JSON, tables, amounts, lines and progress."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from mlebench.cli.quantities import amount_text
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import reason_of
from mlebench.core.untrusted import plain
from mlebench.engine.progress import Progress

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


def mask_braces(text: str) -> str:
    text = text.replace("{", "(").replace("}", ")")
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]


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


def folded(
    header: Sequence[str], rows: Sequence[Sequence[str]], keys: int, width: int | None
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """A table as several that fit into a terminal, each with the first columns; whole if the width does not matter."""
    widths = [2 + max(map(len, column)) for column in zip(header, *rows, strict=True)]
    parts: list[list[int]] = [[*range(keys)]]
    for number in range(keys, len(header)):
        needed = sum(widths[index] for index in (*parts[-1], number)) - 2
        if width is not None and needed > width and len(parts[-1]) > keys:
            parts.append([*range(keys)])
        parts[-1].append(number)
    for part in parts:
        yield [header[index] for index in part], [[row[index] for index in part] for row in rows]


def write_output(path: Path, text: str) -> None:
    """Write what a command was told to print to a file."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise PrerequisiteError(f"cannot write {path}: {reason_of(error)}") from error


def is_terminal(stream: TextIO | None) -> bool:
    """Whether it is a terminal; a stream that was closed when the program began is None."""
    return stream is not None and stream.isatty()


def log_line(text: str) -> None:
    """Print a line on stderr, above any bars: click's own idea of stderr would print below them."""
    click.echo(text, file=sys.stderr)


def track(items: Sequence[Item], describe: Callable[[Item], str]) -> Iterator[Item]:
    """Go through items and, on a terminal, show how far along we are."""
    if not is_terminal(sys.stderr):
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console, to_terminal = Console(stderr=True), is_terminal(sys.stdout)
    with RichProgress(*columns, console=console, transient=True, redirect_stdout=to_terminal) as progress:
        task = progress.add_task("", total=len(items))
        for item in items:
            progress.update(task, description=describe(item))
            yield item
            progress.advance(task)


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show on a terminal what is taking time."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


PLAIN_SECONDS = 30  # between two plain lines about one item


@contextmanager
def watching(items: Sequence[str]) -> Iterator[Mapping[str, Progress]]:
    """For each item, the object that receives its progress."""
    if is_terminal(sys.stderr):
        from rich.console import Console

        from mlebench.cli.progress_bars import Bars

        console = Console(stderr=True)
        if console.is_interactive:
            with Bars(items, console, redirect_stdout=is_terminal(sys.stdout)) as bars:
                yield bars.items
            return
    yield {item: _PlainLines(item) for item in items}


class _PlainLines(Progress):
    """Prints a line when work on an item begins, and then one from time to time."""

    def __init__(self, item: str):
        self._item = item
        self._logged_at: float | None = None

    def tell(self, stage: str, done: int = 0, total: int | None = None) -> None:
        now = time.monotonic()
        if self._logged_at is None:
            logger.info("%s: %s", self._item, stage)
        elif now - self._logged_at >= PLAIN_SECONDS:
            logger.info("%s: %s%s", self._item, stage, f", {amount_text(done, total)}" if done or total else "")
        else:
            return
        self._logged_at = now


def cell(value: Any) -> str:
    """A value in a table, in one line; an agent may have chosen it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else " ".join(plain(str(value)).split("\n"))
