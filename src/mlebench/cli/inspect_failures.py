"""mlebench inspect failures"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench.cli.options import Places, json_option, output_option, places_options
from mlebench.cli.output import print_json, say, table_lines, write_output
from mlebench.core.os_errors import reason_of

if TYPE_CHECKING:
    from mlebench.integrity.failures.tables import Judged


@click.command()
@click.argument("named", metavar="GROUP|FILE.jsonl...", nargs=-1, required=True)
@json_option
@output_option
@places_options
@click.pass_obj
def failures(places: Places, named: Sequence[str], as_json: bool, output: Path | None) -> None:
    """Say how runs ended, and what to fix first.

    Each run gets one category; for each agent, the most frequent ones come first. A run's verdict is kept in its
    folder, in findings/failures.json.
    """
    from mlebench.integrity.failures import tables

    judged = _judge(named, places)
    if as_json and output is None:
        print_json(tables.as_json(judged))
        return
    made = tables.as_json(judged)
    text = f"{json.dumps(made, indent=1)}\n" if as_json else "".join(f"{line}\n" for line in _lines(judged))
    if output is None:
        click.echo(text, nl=False)
        return
    write_output(output, text)


def _judge(named: Sequence[str], places: Places) -> "list[Judged]":
    from mlebench.cli.output import track
    from mlebench.integrity.failures.categories import classify_apart
    from mlebench.integrity.failures.tables import Judged
    from mlebench.integrity.subjects import subjects

    registry = places.registry
    found = [(name, subject) for name in named for subject in subjects(name, *places.runs_dirs)]
    judged, unwritten = [], None
    for name, subject in track(found, lambda one: one[1].competition):
        verdict = classify_apart(subject, registry)
        judged.append(Judged(name, subject, verdict))
        if subject.run:
            try:
                verdict.findings().write_for(subject.run.paths)
            except OSError as error:
                unwritten = (
                    f"The findings are shown but not kept: cannot write to {subject.run.paths.root}: {reason_of(error)}"
                )
    if unwritten:
        say(unwritten)
    return judged


def _lines(judged: "list[Judged]") -> Iterator[str]:
    from mlebench.integrity.failures.tables import run_rows, share_rows

    yield from table_lines(["run", "competition", "seed", "category", "also", "what happened"], run_rows(judged))
    yield ""
    yield from table_lines(["agent", "category", "runs", "share", ""], share_rows(judged))
    for one in judged:
        if one.verdict.last_lines:
            yield f"\nThe last lines of {one.subject.name}, which match no rule:"
            yield from (f"  {line}" for line in one.verdict.last_lines)
