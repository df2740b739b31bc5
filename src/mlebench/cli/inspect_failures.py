"""mlebench inspect failures"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench.cli.console import print_json, table_lines, track, write_output
from mlebench.cli.options import FolderOptions, folder_options, json_option, output_option

if TYPE_CHECKING:
    from mlebench.integrity.failures.inspection import ClassifiedRun


@click.command()
@click.argument("named", metavar="GROUP|FILE.jsonl...", nargs=-1, required=True)
@json_option
@output_option
@folder_options
@click.pass_obj
def failures(folders: FolderOptions, named: Sequence[str], as_json: bool, output: Path | None) -> None:
    """Say how runs ended, and what to fix first.

    Each run gets one category; for each agent, the most frequent ones come first. A run's verdict is kept in its
    folder, in findings/failures.json.
    """
    from mlebench.integrity import inspect_failures, read_subjects
    from mlebench.integrity.failures import inspection

    subjects = [subject for name in named for subject in read_subjects(name, *folders.runs_dirs)]
    classified = list(inspect_failures(track(subjects, lambda subject: subject.competition), folders.registry))
    if as_json and output is None:
        print_json(inspection.as_json(classified))
        return
    if as_json:
        text = f"{json.dumps(inspection.as_json(classified), indent=1)}\n"
    else:
        text = "".join(f"{line}\n" for line in _lines(classified))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_output(output, text)


def _lines(classified: "list[ClassifiedRun]") -> Iterator[str]:
    from mlebench.integrity.failures.inspection import run_rows, share_rows

    yield from table_lines(["run", "competition", "seed", "category", "also", "what happened"], run_rows(classified))
    yield ""
    yield from table_lines(["agent", "category", "runs", "share", ""], share_rows(classified))
    for run in classified:
        if run.verdict.last_lines:
            yield f"\nThe last lines of {run.subject.name}, which match no rule:"
            yield from (f"  {line}" for line in run.verdict.last_lines)
