"""mlebench runs"""

import glob
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench import paths
from mlebench.cli.groups import VerbGroup, refuse_json_before
from mlebench.cli.options import Places, json_option, output_option, places_options
from mlebench.cli.output import duration_text, print_json, print_table, say, size_text, write_output
from mlebench.cli.placing import placement_of, placement_options
from mlebench.errors import PrerequisiteError
from mlebench.files import LFS_POINTER, is_lfs_pointer
from mlebench.untrusted import UntrustedFileError, open_untrusted, plain

if TYPE_CHECKING:
    from mlebench.run.records import Group, Run

LOG_END = 100_000  # bytes
ANY_SIZE = 1 << 62  # bytes: only the end of a log is read


@click.group(invoke_without_command=True, cls=VerbGroup)
@json_option
@places_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List run groups; `mlebench runs list GROUP` lists the runs of one."""
    refuse_json_before(context, as_json)
    if context.invoked_subcommand is None:
        _list_groups(*context.obj.runs_dirs, as_json=as_json)


@command.command("list")
@click.argument("group")
@json_option
@places_options
@click.pass_obj
def list_runs(places: Places, group: str, as_json: bool) -> None:
    """List the runs of a group."""
    from mlebench.cli.live import print_runs
    from mlebench.run.records import find_group

    found = find_group(group, *places.runs_dirs)
    if as_json:
        print_json([run.record.to_dict() | {"state": run.state} for run in found.runs()])
    else:
        print_runs(found.runs())
        _say_what_stops(found)


@command.command()
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
@places_options
@click.pass_obj
def show(places: Places, run: str, as_json: bool, as_story: bool, lines: int | None) -> None:
    """Show what is known about a run, named by its folder, its id or GROUP/RUN."""
    from mlebench.run.records import Group

    found = _find_run(run, *places.runs_dirs)
    if as_story:
        _tell_story(found, as_json, lines)
        return
    if as_json:
        print_json(found.record.to_dict())
        return
    _tell(Group.read(found.paths.group.root), found)
    _show_log(found, 10 if lines is None else lines)


@command.command()
@click.argument("group")
@placement_options
@places_options
@click.pass_obj
def cancel(places: Places, group: str, **options: Any) -> None:
    """Cancel a group: its runs in progress end, and none is started until `mlebench run --resume GROUP`."""
    from mlebench.run.group import cancel as cancel_group
    from mlebench.run.group import counts
    from mlebench.run.records import find_group, require_ours
    from mlebench.run.schedulers import is_reachable, scheduler_for

    found = find_group(group, *places.runs_dirs)
    require_ours(found)
    placement = placement_of(**options, group=found)
    cancel_group(found)  # first: commands that watch the group must not submit again what its scheduler drops
    if is_reachable(placement):
        count = scheduler_for(found, placement, found.record.workers or 1).cancel()
        what = f"Cancelled {count} runs at {placement.name}."
    else:
        what = f"Cancelled: {counts(found)['running']} runs in progress end within seconds."
    say(f"{what} `mlebench run --resume {found.paths.root}` continues them.")


@command.command()
@click.argument("group")
@click.option("--rel-log-path", default="logs/agent.log", show_default=True, help="Path of the log in a run's folder.")
@click.option("--rel-code-path", default="code/train.py", show_default=True, help="Path of the code in a run's folder.")
@output_option
@places_options
@click.pass_obj
def submission(places: Places, group: str, rel_log_path: str, rel_code_path: str, output: Path | None) -> None:
    """Write the JSON lines that `mlebench grade --submission` reads."""
    from mlebench.run.group import submission_lines
    from mlebench.run.records import find_group

    lines = submission_lines(find_group(group, *places.runs_dirs), rel_log_path, rel_code_path)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_output(output, text)


def _list_groups(runs_dir: Path, *more: Path, as_json: bool) -> None:
    from mlebench.run.group import counts, groups_in

    rows = []
    for group in groups_in(runs_dir, say):
        count = counts(group)
        who = {"group": group.record.id, "agent": group.record.agent["name"]}
        rows.append({**who, **count, "data": _data(group), "origin": group.record.origin})
    if as_json:
        print_json(rows)
    elif rows:
        header = [name for name in rows[0] if name != "origin" or any(row["origin"] for row in rows)]
        print_table(header, [[row[name] for name in header] for row in rows])
    if not rows:
        say(f"There are no run groups in {runs_dir}.")
        _say_where_reports_are(runs_dir)
        for folder in more:
            if count := len(groups_in(folder)):
                there, them = ("is 1", "it") if count == 1 else (f"are {count}", "them")
                say(f"There {there} in {folder}: `mlebench runs --runs-dir {folder}` lists {them}.")


def _say_where_reports_are(runs_dir: Path) -> None:
    """Name grading reports in a folder without run groups, and in its subfolders, which the reference publishes."""
    from mlebench.run.grading_reports import newest_report

    if not runs_dir.is_dir():
        return
    if newest_report(runs_dir):
        say(f"It holds grading reports: `mlebench report {runs_dir}` shows them.")
    elif with_reports := [folder for folder in sorted(runs_dir.iterdir()) if folder.is_dir() and newest_report(folder)]:
        many = "a subfolder" if len(with_reports) == 1 else f"{len(with_reports)} subfolders"
        say(f"It has grading reports in {many}: `mlebench report {with_reports[-1]}` shows those of one.")


def _say_what_stops(group: "Group") -> None:
    from mlebench.run.hosts import stop_line, stopped_hosts

    if group.record.origin:
        say(f"This group was {group.record.origin_words}: seeds, times and how agents ended are unknown.")
    if fault := group.report_fault():
        say(f"Its runs have no scores: {fault}.")
    if group.paths.cancelled.exists():
        say(f"The group was cancelled. `mlebench run --resume {group.paths.root}` continues it.")
    for host, reason in stopped_hosts(group.paths).items():
        say(f"{stop_line(host, plain(reason))}.")


def _data(group: "Group") -> str:
    if group.record.twin is None:
        return "unknown"
    return "twin" if group.record.twin else group.record.profile


def _find_run(named: str, *runs_dirs: Path) -> "Run":
    from mlebench.run.records import Run, is_group
    from mlebench.run.reference_groups import is_reference_group

    folder = Path(named).absolute()
    if paths.RunPaths(folder).record.is_file() or (folder.is_dir() and is_reference_group(folder.parent)):
        return Run.read(folder)
    begun = f"{glob.escape(named)}*"
    patterns = (f"*/*_{begun}/run.json", f"*/{begun}/run.json", f"./{begun}/run.json")
    found = {path.parent for folder in runs_dirs for pattern in patterns for path in folder.glob(pattern)}
    matches = sorted(found.union(*(_runs_of_reference(folder, named) for folder in runs_dirs)))
    if len(matches) == 1:
        return Run.read(matches[0])
    if not matches:
        if any(is_group(folder / named) for folder in (Path(), *runs_dirs)):
            raise PrerequisiteError(f"{named} is a run group: `mlebench runs list {named}` lists its runs")
        raise PrerequisiteError(
            f"there is no run {named!r}, neither as a path nor in {' or '.join(map(str, runs_dirs))}"
        )
    folders = " and ".join(dict.fromkeys(str(path.parents[1]) for path in matches))
    raise PrerequisiteError(f"{named!r} is the beginning of {len(matches)} runs in {folders}: give more of it")


def _runs_of_reference(runs_dir: Path, named: str) -> Iterator[Path]:
    """The runs in groups of the reference whose folder or id begins like this."""
    from mlebench.run.group import groups_in

    for group in groups_in(runs_dir):
        for run in group.run_paths() if group.record.origin else ():
            names = (run.root.name, run.root.name.rpartition("_")[2], f"{group.paths.root.name}/{run.root.name}")
            if any(name.startswith(named) for name in names):
                yield run.root


def _tell_story(run: "Run", as_json: bool, lines: int | None) -> None:
    from mlebench.cli.story import MOST_LINES, story_lines
    from mlebench.run.trajectory import story

    told = story(run)
    if as_json:
        print_json(told.to_dict())
        return
    for line in story_lines(told, MOST_LINES if lines is None else lines):
        click.echo(line)


def _tell(group: "Group", run: "Run") -> None:
    from mlebench.run.conditions import options_text
    from mlebench.run.model import outcome_words

    record, facts = run.record, run.record.conditions
    report = record.report or {}
    _line("run", record.run_id)
    _line("agent", _with_details(group.record.agent))
    _line("options", options_text(group.record.agent_options))
    _line("origin", group.record.origin_words)
    seed = "unknown" if record.seed is None else record.seed
    _line("competition", f"{record.competition}, seed {seed}, {_data(group)} data")
    detail = f": {record.detail}" if record.detail else ""
    _line("state", f"{outcome_words(record)}{detail}" if record.is_final else run.state)
    _line("next", _next_command(group, run))
    _line("sandbox", ", ".join(str(facts[key]) for key in ("sandbox", "version", "image_id") if facts.get(key)))
    if facts:
        _line("sealed", "yes" if facts.get("sealed") else f"no: {', '.join(facts.get('unsealed_by', []))}")
        _line("network", facts.get("network"))
        _line("limits", _limits_text(facts))
    _line("time", _times(run))
    _tell_model(group, run)
    for attempt in record.attempts:
        ended = attempt.get("ended", "in progress")
        _line(f"attempt {attempt['number']}", f"{attempt['started_at']} on {attempt['host']}: {ended}")
    if (record.starts or 0) > 1:
        _line("starts", f"{record.starts}: the agent was started more than once")
    if record.rerolls:
        _line("re-rolls", f"{record.rerolls}: repeated after it had failed")
    kept = sorted(run.paths.snapshots.glob("*.csv")) if run.paths.snapshots.is_dir() else []
    if kept:
        _line("submissions", f"{len(kept)} kept, the first after {float(kept[0].stem):g} s")
    _line("submission", record.submission)
    if report:
        reason = f": {_one_line(report['reason'])}" if report.get("reason") else ""
        _line("status", f"{report['status']}{reason}")
        _line("score", report.get("score"))
        from mlebench.cli.live import medal

        _line("medal", medal(report))
    for item in facts.get("collected", {}).get("left_out", []):
        _line("left out", f"{_one_line(item['name'])}: {item['reason']}")
    _tell_findings(run)
    _line("files", run.paths.root)


def _next_command(group: "Group", run: "Run") -> str | None:
    """What to do about a run that failed."""
    from mlebench.cli.live import retry_command
    from mlebench.outcomes import AGENT_ERROR, NOT_THE_AGENTS_FAULT

    if run.record.ended in NOT_THE_AGENTS_FAULT:
        return f"{retry_command(group)} repeats it"
    if run.record.ended == AGENT_ERROR:
        return f"`mlebench inspect failures {group.paths.root}` says why runs failed"
    return None


def _tell_findings(run: "Run") -> None:
    from mlebench.run.findings import read_findings

    for record in read_findings(run):
        for found in record.findings:
            _line("found", _one_line(f"{found['kind']}: {found['rule']}: {found['says']}"))


def _tell_model(group: "Group", run: "Run") -> None:
    from mlebench.run.model import use_so_far

    asked, use = group.record.model, use_so_far(group, run)
    if asked:
        budget = f", at most {asked['budget']}" if asked.get("budget") else ""
        _line("model", _one_line(f"{', '.join(asked['models'])} at {asked['endpoint']}{budget}"))
    if use:
        _line("calls", _calls_text(use))
        _line("tokens", _tokens_text(use))
        _line("cost", _cost_text(use))


def _calls_text(use: dict[str, Any]) -> str:
    named = [("failed", "failed"), ("retries", "retries"), ("refused", "refused"), ("calls_without_usage", "uncounted")]
    rest = [f"{use[key]} {word}" for key, word in named if use.get(key)]
    budget = use.get("budget") or {}
    if budget.get("exceeded"):
        rest.append("the budget was used up")
    elif budget.get("not_enough"):
        rest.append(f"not enough of the budget was left for {budget['not_enough']}")
    if removed := use.get("removed_fields"):
        rest.append(f"without the unknown fields {', '.join(removed)}")
    return ", ".join([str(use.get("calls")), *rest])


def _tokens_text(use: dict[str, Any]) -> str:
    named = [(name, use.get(f"{name}_tokens")) for name in ("input", "cached", "output", "reasoning")]
    return ", ".join(f"{count} {name}" for name, count in named if count is not None)


def _cost_text(use: dict[str, Any]) -> str:
    if use.get("cost") is None:
        return "unknown"
    return f"{'at least ' if use.get('is_lower_bound') else ''}{use['cost']:.4f} US dollars"


def _line(name: str, value: Any) -> None:
    """A fact. Records quote what agents wrote, such as the last line of a log."""
    if value not in (None, ""):
        click.echo(f"{name:<14}{' '.join(plain(str(value)).splitlines())}")


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _with_details(agent: dict[str, Any]) -> str:
    details = [f"{name} {agent[name]}" for name in ("model", "scaffold") if agent.get(name)]
    return ", ".join([agent["name"], *details])


def _limits_text(facts: dict[str, Any]) -> str:
    limits, kept = facts.get("limits", {}), facts.get("kept", {})
    if not limits:
        return ""
    shared = f" ({runs} runs share each)" if (runs := facts.get("runs_per_gpu", 1)) > 1 else ""
    return (
        f"{duration_text(limits['seconds'])} of time, {_count(limits['cpus'], 'CPU')} ({kept.get('cpu')}), "
        f"{size_text(limits['memory'])} of memory ({kept.get('memory')}), {size_text(limits['disk'])} of disk, "
        f"GPUs: {', '.join(facts.get('gpus', [])) or 'none'}{shared}"
    )


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'s' * (number != 1)}"


def _times(run: "Run") -> str:
    from mlebench.run.group import elapsed

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
