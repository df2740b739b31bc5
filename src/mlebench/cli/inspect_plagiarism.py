"""mlebench inspect plagiarism"""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import print_json, print_table, spinner
from mlebench.cli.options import FolderOptions, folder_options, json_option
from mlebench.core.untrusted import one_line, plain

if TYPE_CHECKING:
    from mlebench.integrity.plagiarism.comparison import CodeComparison

NOTEBOOK_HEADER = ["run", "competition", "file", "closest notebook", "contained", "similar", "longest", "that is"]
RUN_HEADER = ["run", "closest run", "of", "file", "contained", "similar", "longest", "that is"]


@click.command()
@click.argument("named", metavar="GROUP|FILE.jsonl...", nargs=-1, required=True)
@click.option(
    "--corpus",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of .py and .ipynb files to compare with. Default: the notebooks that `dev download-kernels` got.",
)
@click.option("--show", is_flag=True, help="Also print the longest shared passages, side by side.")
@json_option
@folder_options
@click.pass_obj
def plagiarism(folders: FolderOptions, named: Sequence[str], corpus: Path | None, show: bool, as_json: bool) -> None:
    """Find code shared with notebooks and other runs.

    Says how much is shared, and how unusual that is. Renaming variables or reordering code does not hide what is
    shared. The findings are kept in each run's folder, in findings/plagiarism.json, with the longest passages.
    """
    from mlebench.integrity import inspect_plagiarism, read_subjects

    subjects = [subject for name in named for subject in read_subjects(name, *folders.runs_dirs)]
    with spinner("Reading code"):
        inspected = list(inspect_plagiarism(subjects, corpus))
    if as_json:
        print_json({"runs": [run.to_dict() for run in inspected]})
        return
    _show_tables([run.compared for run in inspected])
    if show:
        for run in inspected:
            _show_passages(run.compared)


def _show_tables(compared: "Sequence[CodeComparison]") -> None:
    from mlebench.integrity.plagiarism.results import notebook_rows, run_rows

    print_table(NOTEBOOK_HEADER, _plain(notebook_rows(compared)))
    if rows := list(_plain(run_rows(compared))):
        click.echo("\nRuns of a competition against each other. Runs of one agent are expected to be alike.")
        print_table(RUN_HEADER, rows)
    click.echo()
    for name in dict.fromkeys(comparison.notebooks.name for comparison in compared):
        notebooks = next(comparison.notebooks for comparison in compared if comparison.notebooks.name == name)
        unread = f", {len(notebooks.unread)} of them unreadable" if notebooks.unread else ""
        says = notebooks.missing or f"{len(notebooks.reads)} files{unread}; {notebooks.corpus.threshold.says}"
        click.echo(f"{plain(name)}: {says}")


def _plain(rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    return ([one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def _show_passages(comparison: "CodeComparison") -> None:
    for match in (*comparison.closest, *comparison.runs):
        match_name = one_line(match.name) + (f" (a run of {match.agent})" if match.agent else "")
        for passage in match.passages:
            click.echo(f"\n{comparison.subject.name} and {match_name}: {passage['tokens']} tokens")
            for line in side_by_side(passage, shutil.get_terminal_size((160, 24)).columns):
                click.echo(line)


def side_by_side(passage: dict[str, Any], width: int) -> Iterator[str]:
    """Two columns of code, line beside line, with their locations above; long lines wrap."""
    room = max(20, (width - 3) // 2)
    left, right = (_code_lines(passage[side], room) for side in ("left", "right"))
    for pair in zip_longest(left, right, fillvalue=""):
        parts = [textwrap.wrap(line, room, **_AS_IT_IS) or [""] for line in pair]
        for left_line, right_line in zip_longest(*parts, fillvalue=""):
            yield f"{left_line:<{room}} │ {right_line}".rstrip()


def _code_lines(side: dict[str, Any], width: int) -> list[str]:
    """The location of a passage, its lines, and how many more there are."""
    cell = f", cell {side['cell']}" if side["cell"] else ""
    lines = side["text"].split("\n")
    more = side["lines"] - len(lines)
    location = f"{' '.join(side['file'].split())}{cell}, line {side['line']}"
    return [location, "─" * width, *lines, *([f"… and {more} more lines"] if more > 0 else [])]


_AS_IT_IS: dict[str, Any] = {"drop_whitespace": False, "replace_whitespace": False, "break_on_hyphens": False}
