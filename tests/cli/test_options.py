"""Options that mean the same are the same in all commands."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from mlebench.cli import main
from mlebench.cli.verbs import VERBS

READ_RUNS = [
    *("bundle make", "bundle verify", "doctor", "grade", "inspect", "report", "run", "runs", "view"),
    *(f"inspect {name}" for name in ("failures", "familiarity", "plagiarism", "rules")),
    *(f"runs {name}" for name in ("cancel", "list", "show", "submission")),
]


def commands() -> dict[str, click.Command]:
    def below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        for word, inner in command.commands.items() if isinstance(command, click.Group) else ():
            yield from below(f"{name} {word}", inner)

    modules = {verb: import_module(f"mlebench.cli.{verb.replace('-', '_')}") for verb in VERBS}
    return {name: found for verb, module in modules.items() for name, found in below(verb, module.command)}


def options_of(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option) and not option.hidden]


# Options whose explanation depends on the command, though their name and their form do not.
DIFFERS = {
    "--budget": "for each run, or for all questions to a model",
    "--description": "a description to show is not one to prepare",
    "--environment": "for a run, or to try it",
    "--endpoint": "a run's model may speak another API than OpenAI's",
    "--force": "what is done again",
    "--from": "raw data, or packed npm packages",
    "--interval": "what it adds to",
    "--gpus": "for the workers of a group to share, or those of one run",
    "--host": "of no use without --serve",
    "--jobs": "what is done at a time",
    "--max-bytes": "a server reads less",
    "--memory": "for a run or for a submission",
    "--model": "one for all runs, or one to ask",
    "--output": "a bundle is no text, and pages need a folder",
    "--port": "of no use without --serve",
    "--profile": "graders take several at once",
    "--reports": "what they are read for",
    "--split": "a report has splits of its own",
    "--strict": "what else counts as a fault",
    "--time-limit": "for a run or for a submission",
    "--twin": "what is made",
    "--competition-id": "a server has one competition",
    "--agent": "a built-in agent has no image",
}


def test_an_option_is_the_same_wherever_it_is() -> None:
    forms: dict[str, set[tuple[object, ...]]] = {}
    for found in commands().values():
        for option in options_of(found):
            name = next(word for word in option.opts if word.startswith("--"))
            forms.setdefault(name, set()).add((option.help, option.default, option.type.name, option.metavar))
    assert {name for name, kinds in forms.items() if len(kinds) > 1} == set(DIFFERS)


def test_whatever_reads_runs_can_be_told_where_they_are() -> None:
    names = {name: {word for option in options_of(found) for word in option.opts} for name, found in commands().items()}
    assert sorted(name for name, words in names.items() if "--runs-dir" in words) == sorted(READ_RUNS)
    assert all("--data-dir" in names[name] for name in READ_RUNS)


@pytest.mark.parametrize("words", [["runs", "list"], ["runs", "show"], ["inspect", "failures"], ["inspect", "rules"]])
@pytest.mark.parametrize("before", [True, False])
def test_runs_dir_may_stand_before_and_after_a_command(
    words: list[str], before: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, name = words
    where = ["--runs-dir", str(tmp_path)]
    with pytest.raises(SystemExit) as end:
        main([verb, *(where if before else []), name, "nothing", *([] if before else where)])
    assert end.value.code == 1
    assert str(tmp_path) in capsys.readouterr().err
