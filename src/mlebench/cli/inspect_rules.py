"""mlebench inspect rules"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import log_line, print_json, print_table
from mlebench.cli.model_options import question_options
from mlebench.cli.options import FolderOptions, folder_options, json_option
from mlebench.core import paths
from mlebench.core.untrusted import one_line

if TYPE_CHECKING:
    from mlebench.integrity.rules.calibration import Calibration
    from mlebench.integrity.rules.inspection import RulesInspection
    from mlebench.integrity.rules.judge import Judge

_FOR_JUDGE = ("endpoint", "key_env", "questions", "extra_prompt", "budget", "judge_log", "send_logs", "calibrate")


@click.command()
@click.argument("group", required=False)
@click.option("--judge", "model", metavar="NAME", help="Also ask a language model.")
@question_options
@click.option(
    "--questions",
    metavar="IDS",
    help="Ids of questions, or YAML files, separated by commas. Default: all fixed questions.",
)
@click.option(
    "--extra-prompt", type=click.Path(dir_okay=False, path_type=Path), help="A file with instructions of your own."
)
@click.option(
    "--judge-log",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the judge's trace and cost are kept. Default: a folder in the user's state directory.",
)
@click.option("--send-logs", is_flag=True, help="Allow logs and code to be sent to the judge, scrubbed of secrets.")
@click.option("--calibrate", is_flag=True, help="Measure how good the judge is, on built-in cases.")
@json_option
@folder_options
@click.pass_obj
def rules(folders: FolderOptions, group: str | None, model: str | None, as_json: bool, **options: Any) -> None:
    """Find out which rules the runs of a group broke.

    GROUP is a run group, or a JSON-lines file with `logs_path`, `code_path` and `submission_path`.
    """
    from mlebench.integrity import inspect_rules, read_subjects
    from mlebench.integrity.rules.inspection import rates

    _refuse(group, model, options)
    judge = _judge(model, options) if model else None
    calibration = _calibration(judge, options["calibrate"]) if judge else None
    if group is None:
        if as_json and calibration:
            print_json(calibration.to_dict())
        return
    inspected = []
    subjects = read_subjects(group, *folders.runs_dirs)
    for run in inspect_rules(subjects, folders.registry.get_data_dir(), judge, calibration):
        inspected.append(run)
        if not as_json:
            _show(run)
    rows = rates(inspected, judge, calibration)
    if as_json:
        print_json({"runs": [inspection.to_dict() for inspection in inspected], "rates": rows})
    else:
        _show_all(inspected, rows)


def _refuse(group: str | None, model: str | None, options: dict[str, Any]) -> None:
    if model is None and any(options[name] for name in _FOR_JUDGE):
        raise click.UsageError("options for a judge need --judge NAME")
    if group is None and not options["calibrate"]:
        raise click.UsageError("name a run group, or a JSON-lines file")
    if model and group and not options["send_logs"]:
        raise click.UsageError(
            "the judge reads logs and code, which may leave this host: add --send-logs if that is acceptable "
            "(needed even for an endpoint on this host, which may pass them on)"
        )


def _judge(model: str, options: dict[str, Any]) -> "Judge":
    from mlebench.gateway.access import OPENAI, plan_access
    from mlebench.gateway.prices import read_prices
    from mlebench.integrity.model_endpoint import ModelEndpoint
    from mlebench.integrity.rules.judge import Judge
    from mlebench.integrity.rules.rubric import load_rubric

    named = [name.strip() for name in (options["questions"] or "").split(",") if name.strip()]
    rubric = load_rubric(named, options["extra_prompt"])
    access = plan_access(
        [model],
        read_prices(),
        provider=OPENAI,
        **{name: options[name] for name in ("endpoint", "key_env", "budget")},
    )
    return Judge(ModelEndpoint(access, options["judge_log"] or paths.judge_dir()), rubric)


def _calibration(judge: "Judge", calibrate_now: bool) -> "Calibration | None":
    from mlebench.integrity.rules.calibration import calibrate, store, stored

    if not calibrate_now:
        return stored(judge)
    made = calibrate(judge)
    path = store(judge, made)
    log_line(f"{made.model}, rubric {made.rubric}, {made.cases} cases; kept in {path}")
    for question in made.questions:
        log_line(f"  {question}: {made.rates(question)}")
    if made.wrong:
        log_line(f"  judged wrongly: {', '.join(made.wrong)}")
    return made


def _show(inspection: "RulesInspection") -> None:
    if not inspection.record.findings:
        return
    click.echo(f"{inspection.subject.name} ({inspection.subject.competition})")
    for finding in inspection.record.findings:
        click.echo(f"  {finding.kind}: {finding.rule}: {one_line(finding.says)}")
        for evidence in finding.evidence:
            where = f"{evidence.file}:{evidence.line}" if evidence.line else evidence.file
            click.echo(f"    {one_line(where)}: {one_line(evidence.quote)}")


def _show_all(inspected: "list[RulesInspection]", rows: list[dict[str, Any]]) -> None:
    from mlebench.records.findings import KINDS

    ids = list(inspected[0].answers) if inspected else []
    header = ["run", "competition", *(f"{kind}s" for kind in KINDS), *(f"judge: {id}" for id in ids)]
    click.echo()
    print_table(
        header,
        [
            [
                one_line(inspection.subject.name),
                inspection.subject.competition,
                *map(inspection.count, KINDS),
                *(inspection.answers.get(id) for id in ids),
            ]
            for inspection in inspected
        ],
    )
    click.echo()
    for row in rows:
        unsure = f", not enough evidence in {row['not_enough_evidence']}" if row.get("not_enough_evidence") else ""
        trust = f" ({row['judge']})" if "judge" in row else ""
        click.echo(f"{row['what']}: in {row['runs']} of {row['of']} runs{unsure}{trust}")
