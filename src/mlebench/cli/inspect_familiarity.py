"""mlebench inspect familiarity"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import log_line, print_json, table_lines, track, write_output
from mlebench.cli.model_options import question_options
from mlebench.cli.options import FolderOptions, folder_options, json_option, output_option
from mlebench.core import paths

if TYPE_CHECKING:
    from mlebench.integrity.familiarity.performance import Correlation
    from mlebench.integrity.familiarity.studied_model import StudiedModel
    from mlebench.integrity.familiarity.study import Familiarity

_FOR_MODEL = ("endpoint", "key_env", "budget", "texts", "send_texts")


@click.command()
@click.argument("competitions", metavar="[COMPETITION_ID]...", nargs=-1)
@click.option("--cutoff", metavar="YYYY-MM[-DD]", help="When the model's training data ends, according to its makers.")
@click.option(
    "--meta-kaggle",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Competitions.csv from Kaggle's Meta Kaggle dataset, for deadlines that mlebench does not know.",
)
@click.option("--model", metavar="NAME", help="Ask this model to continue original texts.")
@question_options
@click.option(
    "--texts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Original texts: ID.md, ID.txt, or a folder ID with .md, .txt, .csv and .tsv files.",
)
@click.option("--send-texts", is_flag=True, help="Allow pieces of original texts and data to be sent to the model.")
@click.option(
    "--samples",
    type=click.IntRange(1, 200),
    default=8,
    show_default=True,
    help="The most pieces of each kind for each competition; each piece takes two calls.",
)
@click.option("--reports", multiple=True, metavar="[NAME=]FILE", help="A grading report to correlate with.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="An SVG file to draw the correlation in.")
@json_option
@output_option
@folder_options
@click.pass_obj
def familiarity(folders: FolderOptions, competitions: Sequence[str], **options: Any) -> None:
    """Measure how well a model knows competitions.

    Without names, all competitions. Compares deadlines with the model's cut-off. With --model, also measures how
    much better it continues original texts than perturbed ones; with --reports too, whether agents do better where
    that difference is larger.
    """
    from mlebench.integrity.familiarity.deadlines import parse_cutoff, read_meta_kaggle
    from mlebench.integrity.familiarity.performance import correlate
    from mlebench.integrity.familiarity.study import FamiliarityStudy, StudyOptions

    _refuse(options)
    registry = folders.registry
    chosen = [registry.get_competition(id) for id in competitions or registry.list_competition_ids()]
    performance = _performance(options["reports"], *folders.runs_dirs) if options["reports"] else {}
    study_options = StudyOptions(
        cutoff=parse_cutoff(options["cutoff"]) if options["cutoff"] else None,
        meta=read_meta_kaggle(options["meta_kaggle"]) if options["meta_kaggle"] else None,
        texts=options["texts"],
        samples=options["samples"],
        model=_model(options) if options["model"] else None,
    )
    study = FamiliarityStudy(study_options)
    measured = [study.measure(competition) for competition in track(chosen, lambda competition: competition.id)]
    if model := study_options.model:
        log_line(f"{model.calls} calls were made; answers are kept in {model.kept}")
    _show(measured, correlate(measured, performance), options)


def _refuse(options: dict[str, Any]) -> None:
    if options["model"] is None and any(options[name] for name in _FOR_MODEL):
        raise click.UsageError("--endpoint, --key-env, --budget, --texts and --send-texts need --model")
    if options["model"] and not options["send_texts"]:
        raise click.UsageError(
            "this sends the model pieces of original texts and real data, which may be under a licence: add "
            "--send-texts if that is acceptable (needed even for an endpoint on this host, which may pass them on)"
        )
    if options["reports"] and options["model"] is None:
        raise click.UsageError("--reports are correlated with what a model knows: name one with --model")
    if options["plot"] and not options["reports"]:
        raise click.UsageError("--plot draws a correlation: it needs --reports")


def _performance(reports: Sequence[str], *runs_dirs: Path) -> dict[str, dict[str, float]]:
    from mlebench.integrity.familiarity.performance import read_performance
    from mlebench.report.inputs import Inputs

    inputs = Inputs(runs_dirs[0], more_runs_dirs=runs_dirs[1:])
    for named in reports:
        inputs.add(named)
    return read_performance(inputs)


def _model(options: dict[str, Any]) -> "StudiedModel":
    from mlebench.gateway.access import OPENAI, plan_access
    from mlebench.gateway.prices import read_prices
    from mlebench.integrity.familiarity.studied_model import StudiedModel
    from mlebench.integrity.model_endpoint import ModelEndpoint

    access = plan_access(
        [options["model"]],
        read_prices(),
        provider=OPENAI,
        **{name: options[name] for name in ("endpoint", "key_env", "budget")},
    )
    log_line(f"Sending pieces of original texts and of our own descriptions to {options['model']} at {access.endpoint}")
    folder = paths.familiarity_dir()
    return StudiedModel(ModelEndpoint(access, folder / "calls", name="the model"), folder / "answers")


def _show(familiarities: "list[Familiarity]", correlations: "list[Correlation]", options: dict[str, Any]) -> None:
    from mlebench.integrity.familiarity import plot, results

    if options["plot"]:
        write_output(options["plot"], plot.svg(correlations))
    if options["as_json"]:
        facts = {name: options[name] for name in ("model", "endpoint", "cutoff", "samples")}
        made = results.as_json(familiarities, correlations, **facts)
        if options["output"] is None:
            print_json(made)
        else:
            write_output(options["output"], f"{json.dumps(made, indent=1)}\n")
        return
    text = "".join(f"{line}\n" for line in _lines(familiarities, correlations))
    if options["output"] is None:
        click.echo(text, nl=False)
    else:
        write_output(options["output"], text)


def _lines(familiarities: "list[Familiarity]", correlations: "list[Correlation]") -> Iterator[str]:
    from mlebench.integrity.familiarity import plot, results

    yield from table_lines(results.header(familiarities), results.rows(familiarities))
    if any(familiarity.likelihood for familiarity in familiarities):
        yield ""
        yield from table_lines(results.LIKELIHOOD, results.likelihood_rows(familiarities))
    yield ""
    yield from results.notes(familiarities)
    for correlation in correlations:
        yield ""
        yield f"{correlation.agent}, familiarity against performance: " + (
            f"Spearman {correlation.estimate}, n = {correlation.estimate.n}"
            if correlation.estimate
            else f"not computed: {correlation.refused}"
        )
        if correlation.estimate:
            yield from plot.in_terminal(correlation.points)
