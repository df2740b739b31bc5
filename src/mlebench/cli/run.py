"""mlebench run"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import log_line, track
from mlebench.cli.executor_options import executor_options
from mlebench.cli.exit_codes import FAILED, INTERRUPTED
from mlebench.cli.invocation import VerbGroup
from mlebench.cli.model_options import model_options, model_request
from mlebench.cli.options import (
    competitions_option,
    data_dir_option,
    listed,
    listing_option,
    members_of,
    profile_option,
    registry_at,
    runs_dir_option,
    runs_dirs_at,
    splits_option,
)
from mlebench.cli.quantities import Duration, PositiveNumber, Size
from mlebench.core.errors import StorageError
from mlebench.core.outcomes import NOT_THE_AGENTS_FAULT, RETRIES, UNGRADED_STATUSES
from mlebench.core.paths import RunPaths
from mlebench.records.group import FOLDERS, NETWORKS, GroupRecord
from mlebench.records.run import RUNNING
from mlebench.records.run_groups import Group, Run, find_group, unfinished
from mlebench.run import GroupCancelledError, Progress, Request, RunsInterrupted, resume, run
from mlebench.run.gpus import MOST_RUNS_PER_GPU
from mlebench.run.request import AUTO
from mlebench.sandbox import BACKENDS, sandbox_named

if TYPE_CHECKING:
    from mlebench.bundles.reader import Bundle
    from mlebench.registry import Competition

# What may differ when a group is resumed.
PLACEMENT = ("workers", "gpus", "executor", "slurm_options", "ray_address")
CHANGEABLE = {"resume_group", "retries", "runs_dir", "data_dir", *PLACEMENT}


@click.group(invoke_without_command=True, cls=VerbGroup)
@click.option(
    "--agent",
    "--agent-id",
    "agent",
    metavar="NAME|FOLDER[#ID]",
    help="The agent. `mlebench agents` lists those built in.",
)
@click.option("--agent-command", metavar="PROGRAM", help="What the agent `command` runs, with bash.")
@click.option(
    "--agent-option",
    "agent_options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=lambda _context, _option, texts: _agent_options(texts),
    help="An argument of the agent, instead of the one in its config.yaml; may be repeated.",
)
@competitions_option
@splits_option
@listing_option("--competition-set")
@click.option(
    "--seeds", "--n-seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs for each competition."
)
@click.option("--workers", "--n-workers", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option(
    "--sandbox",
    type=click.Choice((AUTO, *BACKENDS)),
    default=AUTO,
    show_default=True,
    help="Where agents run. A plain process isolates nothing.",
)
@click.option("--time-limit", type=Duration(), help="For each run. Default: 24h.")
@click.option("--memory", type=Size(), help="For each run. Default: 440 GB or the machine's share per worker.")
@click.option(
    "--cpus",
    type=PositiveNumber(),
    help="For each run. Default: 36 or the machine's share per worker.",
)
@click.option("--shm", type=Size(), help="Size of /dev/shm. Default: 4g.")
@click.option(
    "--gpus",
    metavar="all|none|0,1,…",
    help="GPUs for the workers to share. Default: one each, if there are any. Slurm and Ray: how many for each run.",
)
@click.option(
    "--runs-per-gpu",
    type=click.IntRange(1, MOST_RUNS_PER_GPU),
    default=1,
    show_default=True,
    help="Runs on one GPU at a time. Nothing keeps one from taking the GPU memory of the others.",
)
@click.option(
    "--network",
    type=click.Choice(NETWORKS),
    default="none",
    show_default=True,
    help="What agents can reach. With full, runs are unsealed.",
)
@model_options
@click.option("--obfuscate", is_flag=True, help="Hide from agents which competition it is.")
@click.option(
    "--knowledge",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder that agents may read, at /home/knowledge.",
)
@click.option(
    "--weights",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder of pretrained models that agents may load, at /home/weights.",
)
@click.option(
    "--environment",
    type=click.Path(file_okay=False, path_type=Path),
    help="A conda environment or a venv of this machine that agents use, read-only; not for containers.",
)
@click.option("--retain", is_flag=True, help="Keep the sandbox's folders, and its container, after the run.")
@click.option("--image", metavar="IMAGE", help="For docker and podman. Default: the agent's, or mlebench-env.")
@click.option("--twin", is_flag=True, help="Run on twins; those that are missing are made.")
@profile_option
@click.option(
    "--container-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A JSON file of container limits and runtime.",
)
@click.option(
    "--resume",
    "resume_group",
    metavar="GROUP",
    help="Continue a run group, named by its path or the beginning of its name.",
)
@click.option(
    "--retry",
    "retries",
    type=click.Choice(tuple(RETRIES)),
    multiple=True,
    help="With --resume: also repeat runs that ended this way.",
)
@click.option(
    "--like",
    metavar="RUN|BUNDLE",
    help="Use the options of an earlier run, run group or bundle (its path, or a group's name); options given here "
    "override them.",
)
@runs_dir_option
@executor_options
@data_dir_option
@click.pass_context
def command(context: click.Context, **options: Any) -> None:
    """Run an agent on competitions, in sandboxes, and grade what it submits.

    A run group can be stopped at any time and continued later: `mlebench run --resume GROUP`. `mlebench run exec
    RUN_DIR` executes one planned run. Exit code 1: a run failed or could not be started, through no fault of the
    agent; 130: interrupted or cancelled.
    """
    named = {name: value for name, value in options.items() if _is_named(context, name)}
    if context.invoked_subcommand:
        if named:
            raise click.UsageError(f"`{context.invoked_subcommand}` takes its own options only", context)
        return
    if options["resume_group"]:
        _refuse_conditions(context, named)
        group = find_group(options["resume_group"], *runs_dirs_at(options["runs_dir"], options["data_dir"]))
        progress = _RunProgress(group=group)
        placement = {name: named[name] for name in PLACEMENT if name in named}
        _report(progress, lambda: resume(group, retry=options["retries"], progress=progress, **placement))
        return
    if options["retries"]:
        raise click.UsageError("--retry needs --resume")
    bundle = _bundle(options["like"])
    request = _request(options, named, bundle)
    progress = _RunProgress(bundle)
    _report(progress, lambda: run(request, progress))


@command.command("exec")
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--gpus", default="", help="The GPUs that this run gets, by index or UUID, separated by commas.")
def execute_run(run_dir: Path, gpus: str) -> None:
    """Execute one planned run, from whatever state its folder is in.

    The exit code is 0 if its state is final, 75 if it may be tried again, 74 if its result could not be stored, 2 if it
    cannot work.
    """
    from mlebench.core.errors import PrerequisiteError
    from mlebench.run.execute import execute
    from mlebench.run.gpus import assigned
    from mlebench.run.retry_rules import CANNOT_WORK

    try:
        code = execute(run_dir, assigned([name for name in gpus.split(",") if name]))
    except PrerequisiteError as error:
        click.echo(f"Error: {error}", err=True)
        code = CANNOT_WORK
    raise SystemExit(code)


def _is_named(context: click.Context, name: str) -> bool:
    """Whether an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _refuse_conditions(context: click.Context, named: Mapping[str, Any]) -> None:
    """Where the rest of a group runs may change; what its agents get may not."""
    parameters = [option for option in context.command.params if option.name in named]
    if fixed := [option.opts[0] for option in parameters if option.name not in CHANGEABLE]:
        raise click.UsageError(f"a run group keeps its conditions: leave out {', '.join(fixed)} with --resume")


def _request(options: dict[str, Any], named: dict[str, Any], bundle: "Bundle | None") -> Request:
    """The request that the command line makes, by itself or as changes to an earlier group's."""
    competitions = _competitions(options)
    fields = Request.__dataclass_fields__
    if not options["like"]:
        own = {name: value for name, value in options.items() if name in fields}
        return Request(**own, competitions=competitions, model=model_request(options))
    earlier = _earlier(options, bundle)
    changes = {name: value for name, value in named.items() if name in fields}
    if competitions:
        changes["competitions"] = competitions
    if model := model_request(options, earlier.model):
        changes["model"] = model
    _warn_of_other_files(options, earlier)
    return Request.like(earlier, **changes)


def _agent_options(texts: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE")
        if name in options:
            raise click.BadParameter(f"{name} is given twice")
        options[name] = value
    return options


def _competitions(options: dict[str, Any]) -> list[str]:
    registry = registry_at(options["data_dir"], options["profile"], twin=options["twin"])
    ids = [*options["ids"], *(id for split in options["splits"] for id in members_of(split, registry))]
    return ids + listed(options["listing"])


def _bundle(like: str | None) -> "Bundle | None":
    if not like or not Path(like).is_file():
        return None
    from mlebench.bundles.reader import read_bundle

    return read_bundle(Path(like))


def _earlier(options: dict[str, Any], bundle: "Bundle | None") -> GroupRecord:
    """The record of the group whose conditions are repeated; for a run, with its competition alone."""
    from mlebench.records.run_groups import require_ours

    if bundle:
        from mlebench.bundles.repeat import repeatable_record

        has_agent = bool(options["agent"] or options["agent_command"])
        return repeatable_record(bundle, has_agent=has_agent, folders=[name for name in FOLDERS if options[name]])
    path = Path(options["like"])
    if not path.is_dir():
        path = find_group(options["like"], *runs_dirs_at(options["runs_dir"], options["data_dir"])).paths.root
    earlier_run = Run.read(path) if RunPaths(path).record.is_file() else None
    group = Group.read(path.absolute().parent if earlier_run else path)
    require_ours(group)
    record = group.record.changed(id=options["like"])
    return record.changed(competitions=[earlier_run.record.competition]) if earlier_run else record


def _warn_of_other_files(options: dict[str, Any], earlier: GroupRecord) -> None:
    from mlebench.run.python_environment import HOST_FOLDERS

    for host in HOST_FOLDERS:
        folder, sha256 = options[host.name] or host.path(earlier), host.sha256(earlier)
        if folder and sha256 and folder.is_dir() and host.identity(folder) != sha256:
            log_line(f"Warning: the files in {folder} are not those that the earlier runs were given as --{host.name}.")


class _RunProgress(Progress):
    """Shows a group's runs on the terminal."""

    def __init__(self, bundle: "Bundle | None" = None, group: Group | None = None):
        self._bundle = bundle
        self._is_new = group is None
        self.group = group

    def twins(self, competitions: "Sequence[Competition]") -> "Iterable[Competition]":
        return track(competitions, lambda competition: f"twin of {competition.id}")

    def started(self, group: Group) -> None:
        self.group = group
        if self._is_new:
            log_line(f"Run group {group.paths.root}")
            _say_unseen(group.record)
        if self._bundle:
            _say_what_differs(group, self._bundle)
        _say_sandbox(group.record)

    def watch(self, group: Group) -> AbstractContextManager[Callable[[], None]]:
        from mlebench.cli.live import live_view

        return live_view(group)


def _say_what_differs(group: Group, bundle: "Bundle") -> None:
    from mlebench.bundles.repeat import differences

    if model := group.record.model:
        log_line(f"Model: {', '.join(model.models)} at {model.endpoint}, budget of a run: {model.budget or 'none'}")
    for difference in differences(bundle, group.record):
        log_line(f"Differs from the bundle: {difference}")


def _say_unseen(record: GroupRecord) -> None:
    from mlebench.run.python_environment import ENVIRONMENT

    environment = ENVIRONMENT.of(record)
    if environment and (unseen := ", ".join(environment.unseen())):
        log_line(f"Agents cannot see {unseen}: installed in editable mode, the code is outside the environment.")


def _say_sandbox(record: GroupRecord) -> None:
    """Say which sandbox was chosen, whether it is sealed, and what of the agent it does not use."""
    from mlebench.run.model_usage import unsealed_by

    reasons = unsealed_by(record)
    seal = f"not sealed: {', '.join(reasons)}" if reasons else "sealed"
    log_line(f"Sandbox: {record.sandbox}, {seal}")
    sandbox = None if record.agent.host_only else sandbox_named(record.sandbox)
    if sandbox and not sandbox.is_isolated:
        log_line(
            f"Warning: {sandbox.noun} isolates nothing. The agent can read the answers; these runs count as unsealed."
        )
    if record.network == "full":
        log_line(
            "Warning: the network is open. The agent can reach the competition's solutions; these runs are unsealed."
        )
    if record.runs_per_gpu > 1:
        log_line(f"Up to {record.runs_per_gpu} runs share a GPU, and each of them can take all of its memory.")
    if record.agent.dockerfile and sandbox and not sandbox.runs_images:
        log_line(
            f"The agent's Dockerfile is not used by {sandbox.name}: the agent gets this machine's programs and the "
            f"packages of its `requirements`, if it names any; `--sandbox docker` uses its image."
        )


def _report(progress: _RunProgress, act: Callable[[], Group]) -> None:
    """Do the runs, then print how they ended, and end with the exit code that says so."""
    from mlebench.cli.live import print_runs, say_why
    from mlebench.run.group_operations import finished_report
    from mlebench.run.hosts import stop_line, stopped_hosts

    stop = None
    try:
        act()
    except (GroupCancelledError, RunsInterrupted) as interruption:
        stop = str(interruption)
    except StorageError as error:
        if progress.group is None:
            raise
        log_line(str(error))
    if progress.group is None:
        raise KeyboardInterrupt  # before anything was planned
    group = Group.read(progress.group.paths.root)
    runs = list(group.runs())
    print_runs(runs)
    say_why(group, runs)
    _say_unstored(runs)
    if stop:
        log_line(f"{stop} `mlebench run --resume {group.paths.root}` continues it.")
        sys.exit(INTERRUPTED)
    report = finished_report(group, runs)
    if report is None:
        for host, reason in stopped_hosts(group.paths).items():
            log_line(f"{stop_line(host, reason)}. Mend that host; resuming lets it try again.")
        if left := unfinished(group):
            log_line(f"{len(left)} runs have not ended. `mlebench run --resume {group.paths.root}` continues them.")
        sys.exit(FAILED)
    log_line(f"Grading report: {report}")
    if _say_ungraded(group, runs) or any(run.fault or run.record.ended in NOT_THE_AGENTS_FAULT for run in runs):
        sys.exit(FAILED)


def _say_ungraded(group: Group, runs: Sequence[Run]) -> bool:
    """Say which submissions could not be graded, through no fault of theirs, and what to do about it."""
    reports = {run.paths.root.name: run.record.report for run in runs if run.record.report}
    ungraded = {name: report for name, report in reports.items() if report.status in UNGRADED_STATUSES}
    for name, report in ungraded.items():
        log_line(f"{name} was not graded: {report.reason}")
    if ungraded:
        log_line(f"`mlebench grade {group.paths.root}` grades the submissions again.")
    return bool(ungraded)


def _say_unstored(runs: Sequence[Run]) -> None:
    from mlebench.run.execute import unstored_result

    for ended in runs:
        if ended.state != RUNNING and (work := unstored_result(ended)):  # otherwise, another process may be storing it
            log_line(
                f"{ended.paths.root.name}: the agent has ended, but its result is not stored. It is kept in {work}"
            )
            log_line("If the disk is full, free some space before you resume.")
