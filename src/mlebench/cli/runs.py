"""mlebench runs"""

import glob
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import log_line, print_json, print_table, write_output
from mlebench.cli.executor_options import executor_options
from mlebench.cli.invocation import VerbGroup, refuse_json_before
from mlebench.cli.options import FolderOptions, folder_options, json_option, output_option
from mlebench.cli.quantities import duration_text, size_text
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.untrusted import ANY_SIZE, UntrustedFileError, one_line, open_untrusted, plain

if TYPE_CHECKING:
    from mlebench.records.run import RunConditions
    from mlebench.records.run_groups import Group, Run
    from mlebench.records.usage import ModelUsage

LOG_END = 100_000  # bytes


@click.group(invoke_without_command=True, cls=VerbGroup)
@json_option
@folder_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List run groups; `mlebench runs list GROUP` lists the runs of one."""
    refuse_json_before(context, as_json)
    if context.invoked_subcommand is None:
        _list_groups(*context.obj.runs_dirs, as_json=as_json)


@command.command("list")
@click.argument("group")
@json_option
@folder_options
@click.pass_obj
def list_runs(folders: FolderOptions, group: str, as_json: bool) -> None:
    """List the runs of a group."""
    from mlebench.cli.live import print_runs
    from mlebench.records.run_groups import find_group

    run_group = find_group(group, *folders.runs_dirs)
    if as_json:
        print_json([run.record.to_dict() | {"state": run.state} for run in run_group.runs()])
    else:
        print_runs(run_group.runs())
        _say_what_stops(run_group)


@command.command(short_help="Show what is known about a run.")
@click.argument("run")
@json_option
@click.option(
    "--story", "as_story", is_flag=True, help="Show what happened, in order: thoughts, commands, calls, submissions."
)
@click.option(
    "--lines",
    type=click.IntRange(0),
    help="How many lines to show: of the log's end (default 10) or, with --story, of each text (default 12).",
)
@folder_options
@click.pass_obj
def show(folders: FolderOptions, run: str, as_json: bool, as_story: bool, lines: int | None) -> None:
    """Show what is known about a run, named by its folder, its id or GROUP/RUN."""
    from mlebench.records.run_groups import Group

    named_run = _find_run(run, *folders.runs_dirs)
    if as_story:
        _print_timeline(named_run, as_json, lines)
        return
    if as_json:
        print_json(named_run.record.to_dict())
        return
    _tell(Group.read(named_run.paths.group.root), named_run)
    _show_log(named_run, 10 if lines is None else lines)


@command.command(short_help="Cancel a group.")
@click.argument("group")
@executor_options
@folder_options
@click.pass_obj
def cancel(folders: FolderOptions, group: str, **options: Any) -> None:
    """Cancel a group: its runs in progress end, and none is started until `mlebench run --resume GROUP`."""
    from mlebench.records.run_groups import counts, find_group, require_ours
    from mlebench.run.group_operations import cancel as cancel_group
    from mlebench.run.schedulers import choose_executor, is_reachable, scheduler_for

    run_group = find_group(group, *folders.runs_dirs)
    require_ours(run_group)
    executor_config = choose_executor(**options, recorded=run_group.record.executor)
    cancel_group(run_group)  # first: commands that watch the group must not submit again what its scheduler drops
    if is_reachable(executor_config):
        count = scheduler_for(run_group, executor_config, run_group.record.workers or 1).cancel()
        summary = f"Cancelled {count} runs at {executor_config.name}."
    else:
        summary = f"Cancelled: {counts(run_group)['running']} runs in progress end within seconds."
    log_line(f"{summary} `mlebench run --resume {run_group.paths.root}` continues them.")


@command.command()
@click.argument("group")
@click.option("--rel-log-path", default="logs/agent.log", show_default=True, help="Path of the log in a run's folder.")
@click.option("--rel-code-path", default="code/train.py", show_default=True, help="Path of the code in a run's folder.")
@output_option
@folder_options
@click.pass_obj
def submission(folders: FolderOptions, group: str, rel_log_path: str, rel_code_path: str, output: Path | None) -> None:
    """Write the JSON lines that `mlebench grade --submission` reads."""
    from mlebench.records.run_groups import find_group
    from mlebench.run.group_operations import submission_lines

    lines = submission_lines(find_group(group, *folders.runs_dirs), rel_log_path, rel_code_path)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_output(output, text)


def _list_groups(runs_dir: Path, *more: Path, as_json: bool) -> None:
    from mlebench.records.run_groups import counts, groups_in

    rows = []
    for group in groups_in(runs_dir, log_line):
        count = counts(group)
        who = {"group": group.record.id, "agent": group.record.agent.name}
        rows.append({**who, **count, "data": _data(group), "origin": group.record.origin})
    if as_json:
        print_json(rows)
    elif rows:
        header = [name for name in rows[0] if name != "origin" or any(row["origin"] for row in rows)]
        print_table(header, [[row[name] for name in header] for row in rows])
    if not rows:
        log_line(f"There are no run groups in {runs_dir}.")
        _say_where_reports_are(runs_dir)
        for folder in more:
            if count := len(groups_in(folder)):
                there, them = ("is 1", "it") if count == 1 else (f"are {count}", "them")
                log_line(f"There {there} in {folder}: `mlebench runs --runs-dir {folder}` lists {them}.")


def _say_where_reports_are(runs_dir: Path) -> None:
    """Name grading reports in a folder without run groups, and in its subfolders, which the reference publishes."""
    from mlebench.records.grading_reports import newest_report

    if not runs_dir.is_dir():
        return
    if newest_report(runs_dir):
        log_line(f"It holds grading reports: `mlebench report {runs_dir}` shows them.")
    elif with_reports := [folder for folder in sorted(runs_dir.iterdir()) if folder.is_dir() and newest_report(folder)]:
        many = "a subfolder" if len(with_reports) == 1 else f"{len(with_reports)} subfolders"
        log_line(f"It has grading reports in {many}: `mlebench report {with_reports[-1]}` shows those of one.")


def _say_what_stops(group: "Group") -> None:
    from mlebench.run.hosts import stop_line, stopped_hosts

    if group.record.origin:
        log_line(f"This group was {group.record.origin_words}: seeds, times and how agents ended are unknown.")
    if fault := group.report_fault():
        log_line(f"Its runs have no scores: {fault}.")
    if group.paths.cancelled.exists():
        log_line(f"The group was cancelled. `mlebench run --resume {group.paths.root}` continues it.")
    for host, reason in stopped_hosts(group.paths).items():
        log_line(f"{stop_line(host, plain(reason))}.")


def _data(group: "Group") -> str:
    if group.record.twin is None:
        return "unknown"
    return "twin" if group.record.twin else group.record.profile


def _find_run(named: str, *runs_dirs: Path) -> "Run":
    from mlebench.records.reference_groups import is_reference_group
    from mlebench.records.run_groups import Run, is_group, read_run

    folder = Path(named).absolute()
    if folder.is_dir() and is_group(folder.parent):
        return Run.read(folder) if is_reference_group(folder.parent) else read_run(folder)
    if any(is_group(folder / named) for folder in (Path(), *runs_dirs)):
        raise PrerequisiteError(f"{named} is a run group: `mlebench runs list {named}` lists its runs")
    begun = f"{glob.escape(named)}*"
    patterns = (f"*/*_{begun}/run.json", f"*/{begun}/run.json", f"./{begun}/run.json")
    run_folders = {path.parent for folder in runs_dirs for pattern in patterns for path in folder.glob(pattern)}
    matches = sorted(run_folders.union(*(_runs_of_reference(folder, named) for folder in runs_dirs)))
    if len(matches) == 1:
        return Run.read(matches[0])
    if not matches:
        raise PrerequisiteError(
            f"there is no run {named!r}, neither as a path nor in {' or '.join(map(str, runs_dirs))}; "
            "`mlebench runs list GROUP` lists those of a group"
        )
    folders = " and ".join(dict.fromkeys(str(path.parents[1]) for path in matches))
    raise PrerequisiteError(f"{named!r} is the beginning of {len(matches)} runs in {folders}: give more of it")


def _runs_of_reference(runs_dir: Path, named: str) -> Iterator[Path]:
    """The runs in groups of the reference whose folder or id begins like this."""
    from mlebench.records.run_groups import groups_in

    for group in groups_in(runs_dir):
        for run in group.run_paths() if group.record.origin else ():
            names = (run.root.name, run.root.name.rpartition("_")[2], f"{group.paths.root.name}/{run.root.name}")
            if any(name.startswith(named) for name in names):
                yield run.root


def _print_timeline(run: "Run", as_json: bool, lines: int | None) -> None:
    from mlebench.cli.timeline import MOST_LINES, timeline_lines
    from mlebench.records.timeline import read_timeline

    timeline = read_timeline(run)
    if as_json:
        print_json(timeline.to_dict())
        return
    for line in timeline_lines(timeline, MOST_LINES if lines is None else lines):
        click.echo(line)


def _tell(group: "Group", run: "Run") -> None:
    from mlebench.cli.live import medal_text
    from mlebench.records.conditions import options_text
    from mlebench.run.model_usage import outcome_words

    record, conditions, report, agent = run.record, run.record.conditions, run.record.report, group.record.agent
    _line("run", record.run_id)
    details = [f"{name} {value}" for name in ("model", "scaffold") if (value := getattr(agent, name))]
    _line("agent", ", ".join([agent.name, *details]))
    _line("options", options_text(group.record.agent_options))
    _line("origin", group.record.origin_words)
    seed = "unknown" if record.seed is None else record.seed
    _line("competition", f"{record.competition}, seed {seed}, {_data(group)} data")
    detail = f": {record.detail}" if record.detail else ""
    _line("state", f"{outcome_words(record)}{detail}" if record.is_final else run.state)
    _line("next", _next_command(group, run))
    _line("sandbox", ", ".join(filter(None, (conditions.sandbox, conditions.version, conditions.image_id))))
    if conditions.sandbox:
        _line("sealed", "yes" if conditions.sealed else f"no: {', '.join(conditions.unsealed_by)}")
        _line("network", conditions.network)
        _line("limits", _limits_text(conditions))
    _line("time", _times(run))
    _tell_model(group, run)
    _tell_packages(group, run)
    for attempt in record.attempts:
        ended = attempt.ended or "in progress"
        _line(f"attempt {attempt.number}", f"{attempt.started_at} on {attempt.host}: {ended}")
    if (record.starts or 0) > 1:
        _line("starts", f"{record.starts}: the agent was started more than once")
    if record.rerolls:
        _line("re-rolls", f"{record.rerolls}: repeated after it had failed")
    snapshots = sorted(run.paths.snapshots.glob("*.csv")) if run.paths.snapshots.is_dir() else []
    if snapshots:
        _line("submissions", f"{len(snapshots)}, the first after {float(snapshots[0].stem):g} s")
    _line("submission", record.submission)
    if report:
        reason = f": {one_line(report.reason)}" if report.reason else ""
        _line("status", f"{report.status}{reason}")
        _line("score", report.score)
        _line("medal", medal_text(report))
    for file in conditions.collected.left_out:
        _line("left out", f"{one_line(file.name)}: {file.reason}")
    _tell_findings(run)
    _line("files", run.paths.root)


def _next_command(group: "Group", run: "Run") -> str | None:
    """What to do about a run that failed."""
    from mlebench.cli.live import retry_command
    from mlebench.core.outcomes import AGENT_ERROR, NOT_THE_AGENTS_FAULT

    if run.record.ended in NOT_THE_AGENTS_FAULT:
        return f"{retry_command(group)} repeats it"
    if run.record.ended == AGENT_ERROR:
        return f"`mlebench inspect failures {group.paths.root}` says why runs failed"
    return None


def _tell_findings(run: "Run") -> None:
    from mlebench.records.findings import read_findings

    for record in read_findings(run):
        for finding in record.findings:
            _line("found", one_line(f"{finding.kind}: {finding.rule}: {finding.says}"))


def _tell_model(group: "Group", run: "Run") -> None:
    from mlebench.records.run_groups import usage_so_far

    if model := group.record.model:
        budget = f", at most {model.budget}" if model.budget else ""
        _line("model", one_line(f"{', '.join(model.models)} at {model.endpoint}{budget}"))
    if usage := usage_so_far(run):
        _line("calls", _calls_text(usage))
        counts = {name: getattr(usage, f"{name}_tokens") for name in ("input", "cached", "output", "reasoning")}
        _line("tokens", ", ".join(f"{count} {name}" for name, count in counts.items() if count is not None))
        at_least = "at least " if usage.is_lower_bound else ""
        _line("cost", "unknown" if usage.cost is None else f"{at_least}{usage.cost:.4f} US dollars")


def _tell_packages(group: "Group", run: "Run") -> None:
    from mlebench.records.conditions import packages_text

    if (text := packages_text(group.record)) is None:
        return
    _line("packages", one_line(text))
    if usage := run.record.packages:
        names = ", ".join(f"{file.name} {file.version}" for file in usage.files) or "none"
        refused = f"; {usage.refused} of {usage.requests} requests refused" if usage.refused else ""
        _line("installed", one_line(f"{names}{refused}", 2000))


def _calls_text(usage: "ModelUsage") -> str:
    words = {
        "failed": usage.failed,
        "retries": usage.retries,
        "refused": usage.refused,
        "uncounted": usage.calls_without_usage,
    }
    parts = [str(usage.calls), *(f"{count} {word}" for word, count in words.items() if count)]
    if usage.budget and usage.budget.exceeded:
        parts.append("the budget was used up")
    elif usage.budget and usage.budget.not_enough:
        parts.append(f"not enough of the budget was left for {usage.budget.not_enough}")
    if usage.removed_fields:
        parts.append(f"without the unknown fields {', '.join(usage.removed_fields)}")
    return ", ".join(parts)


def _line(name: str, value: Any) -> None:
    """A fact. Records quote what agents wrote, such as the last line of a log."""
    if value not in (None, ""):
        click.echo(f"{name:<14}{' '.join(plain(str(value)).splitlines())}")


def _limits_text(conditions: "RunConditions") -> str:
    limits, enforced_by = conditions.limits, conditions.kept
    if limits is None:
        return ""
    cpus = limits.cpus or 0
    shared = f" ({runs} runs share each)" if (runs := conditions.runs_per_gpu or 1) > 1 else ""
    return (
        f"{duration_text(limits.seconds)} of time, {cpus:g} CPU{'s' * (cpus != 1)} ({enforced_by.get('cpu')}), "
        f"{size_text(limits.memory or 0)} of memory ({enforced_by.get('memory')}), "
        f"{size_text(limits.disk or 0)} of disk, GPUs: {', '.join(conditions.gpus) or 'none'}{shared}"
    )


def _times(run: "Run") -> str:
    from mlebench.records.run_groups import elapsed

    gone = elapsed(run)
    if gone is not None:
        return f"{duration_text(gone)} so far"
    return "" if run.record.seconds is None else duration_text(run.record.seconds)


def _show_log(run: "Run", lines: int) -> None:
    try:
        with open_untrusted(run.paths.log, ANY_SIZE) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_END))
            content = file.read(LOG_END)
    except (UntrustedFileError, PrerequisiteError, OSError):
        return
    if is_lfs_pointer(content):
        click.echo(f"\nIts log {LFS_POINTER}.")
        return
    end = content.decode("utf-8", "replace").splitlines()
    end = end[len(end) - lines :] if lines < len(end) else end
    if end:
        click.echo("\nThe end of its log:")
    for line in end:
        click.echo(f"  {plain(line)[:500]}")
