"""mlebench run"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mlebench.cli.model_options import model_access, model_options
from mlebench.cli.options import (
    competitions_option,
    data_dir_option,
    listed,
    listing_option,
    registry_at,
    runs_dir_option,
    runs_dirs_at,
    splits_option,
)
from mlebench.cli.output import say
from mlebench.cli.placing import gpus_per_run, placement_of, placement_options, refuse_sharing
from mlebench.cli.quantities import Duration, Positive, Size
from mlebench.core import paths
from mlebench.core.os_errors import OF_DISKS, reason_of
from mlebench.registry import Registry
from mlebench.run.gpus import MOST_RUNS_PER_GPU

if TYPE_CHECKING:
    from mlebench.agents import Agent
    from mlebench.bundles.reading import Bundle
    from mlebench.records.group import GroupRecord, Placement, Requested
    from mlebench.records.run_groups import Group, Run
    from mlebench.run.gpus import Choice
    from mlebench.run.plan import Request
    from mlebench.sandbox import Sandbox

RETRIES = ("infra", "failed", "timeout")
# What may differ when a group is resumed.
PLACEMENT = ("workers", "gpus", "executor", "slurm_options", "ray_address")
CHANGEABLE = {"resume", "retries", "runs_dir", "data_dir", *PLACEMENT}


@click.command()
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
    type=click.Choice(["auto", "docker", "podman", "bubblewrap", "process"]),
    default="auto",
    show_default=True,
    help="Where agents run. A plain process isolates nothing.",
)
@click.option("--time-limit", type=Duration(), help="For each run. Default: 24h.")
@click.option("--memory", type=Size(), help="For each run. Default: 440 GB or the machine's share per worker.")
@click.option(
    "--cpus",
    type=Positive(),
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
    type=click.Choice(["none", "model", "full"]),
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
@click.option("--retain", is_flag=True, help="Keep the sandbox's folders, and its container, after the run.")
@click.option("--image", metavar="IMAGE", help="For docker and podman. Default: the agent's, or mlebench-env.")
@click.option("--twin", is_flag=True, help="Run on twins; those that are missing are made.")
@click.option(
    "--container-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A JSON file of container limits and runtime.",
)
@click.option("--resume", metavar="GROUP", help="Continue a run group, named by its path or the beginning of its name.")
@click.option(
    "--retry",
    "retries",
    type=click.Choice(RETRIES),
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
@placement_options
@data_dir_option
def command(resume: str | None, retries: Sequence[str], workers: int, gpus: str | None, **options: Any) -> None:
    """Run an agent on competitions, in sandboxes, and grade what it submits.

    A run group can be stopped at any time and continued later: `mlebench run --resume GROUP`. `mlebench run exec
    RUN_DIR` executes one planned run. Exit code 1: a run failed or could not be started, through no fault of the
    agent; 130: interrupted or cancelled.
    """
    from mlebench.records.run_groups import find_group, require_ours
    from mlebench.run.group import reopen

    asked = (options["executor"], options["slurm_options"], options["ray_address"])
    if resume:
        _refuse_conditions(click.get_current_context())
        group = find_group(resume, *runs_dirs_at(options["runs_dir"], options["data_dir"]))
        require_ours(group)
        given = click.get_current_context().get_parameter_source("workers")
        workers = workers if given and given.name == "COMMANDLINE" else group.record.workers or 1
        placement = placement_of(*asked, group)
        chosen = _gpus_again(group, gpus, workers, placement)
        _require_model(group, retries, placement)
        reopen(group, only_here=not placement.is_remote)
        _say_sandbox(group.record)
        _execute(group, workers, chosen, retries, placement)
        return
    if retries:
        raise click.UsageError("--retry needs --resume")
    placement = placement_of(*asked)
    group, chosen = _plan(workers, gpus, options, placement)
    say(f"Run group {group.paths.root}")
    if options.get("bundle"):
        _say_what_differs(group, options["bundle"])
    _say_sandbox(group.record)
    _execute(group, workers, chosen, (), placement)


def _refuse_conditions(context: click.Context) -> None:
    """Where the rest of a group runs may change; what its agents get may not."""
    given = [option for option in context.command.params if option.name and not _is_default(context, option.name)]
    if fixed := [option.opts[0] for option in given if option.name not in CHANGEABLE]:
        raise click.UsageError(f"a run group keeps its conditions: leave out {', '.join(fixed)} with --resume")


def _gpus_again(group: "Group", gpus: str | None, workers: int, placement: "Placement") -> "Choice":
    """The GPUs for the rest of a group; how many runs share one was settled when it was planned."""
    from mlebench.run.gpus import Choice, choose_again

    record = group.record
    if placement.is_remote:
        refuse_sharing(record.runs_per_gpu)
        return Choice()
    return choose_again(gpus, workers, record.gpus_per_run or 0, record.runs_per_gpu)


def _chosen_gpus(gpus: str | None, workers: int, runs_per_gpu: int, placement: "Placement") -> "Choice":
    from mlebench.run.gpus import Choice, choose

    if placement.is_remote:
        return Choice((), gpus_per_run(gpus, runs_per_gpu))
    return choose(gpus, workers, runs_per_gpu)


def _say_sandbox(record: "GroupRecord") -> None:
    """Say which sandbox was chosen, whether it is sealed, and what of the agent it does not use."""
    from mlebench.run.model import unsealed_by

    reasons = unsealed_by(record)
    seal = f"not sealed: {', '.join(reasons)}" if reasons else "sealed"
    say(f"Sandbox: {record.sandbox}, {seal}")
    if record.sandbox == "process":
        say("Warning: a plain process isolates nothing. The agent can read the answers; these runs count as unsealed.")
    if record.network == "full":
        say("Warning: the network is open. The agent can reach the competition's solutions; these runs are unsealed.")
    if record.runs_per_gpu > 1:
        say(f"Up to {record.runs_per_gpu} runs share a GPU, and each of them can take all of its memory.")
    if record.agent.dockerfile and record.sandbox in ("bubblewrap", "process"):
        say(
            f"The agent's Dockerfile is not used by {record.sandbox}: the agent gets this machine's programs and the "
            f"packages of its `requirements`, if it names any; `--sandbox docker` uses its image."
        )


def _plan(workers: int, gpus: str | None, options: dict[str, Any], placement: "Placement") -> "tuple[Group, Choice]":
    from mlebench.run.model import require_model
    from mlebench.run.plan import plan

    request = _request(workers, gpus, options, placement)
    if options["twin"]:
        _prepare_twins(request.registry, request.competitions)
    if request.model:
        require_model(request.model, len(request.competitions) * request.seeds, elsewhere=placement.is_remote)
    return plan(request), request.gpus


def _request(workers: int, gpus: str | None, options: dict[str, Any], placement: "Placement") -> "Request":
    from mlebench.agents import load_agent
    from mlebench.run.plan import Request

    options["runtime"] = None  # there is no option for it
    if options["like"]:
        options = _like(options)
    if not options["agent"] and options["agent_command"]:
        options["agent"] = "command"
    if not options["agent"]:
        raise click.UsageError("name an agent with --agent; `mlebench agents` lists those built in")
    agent = load_agent(options["agent"], options["agent_command"], options["agent_options"])
    requested, gpus = _requested_limits(options, "none" if agent.host_only else gpus)
    registry = registry_at(options["data_dir"], twin=options["twin"])
    return Request(
        agent=agent,
        agent_source=agent.spec,
        agent_command=options["agent_command"],
        competitions=_competitions(registry, options),
        registry=registry,
        runs_dir=(options["runs_dir"] or paths.default_runs_dir(registry.get_data_dir())).absolute(),
        sandbox=_chosen_sandbox(options["sandbox"], agent, placement),
        auto_sandbox=options["sandbox"] == "auto",
        seeds=options["seeds"],
        workers=workers,
        requested=requested,
        gpus=_chosen_gpus(gpus, workers, options["runs_per_gpu"], placement),
        placement=placement,
        network=options["network"],
        model=model_access(options, agent.model),
        obfuscate=options["obfuscate"],
        knowledge=options["knowledge"],
        retain=options["retain"],
        image=options["image"],
        runtime=options["runtime"],
        like=options["like"],
    )


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


def _chosen_sandbox(named: str, agent: "Agent", placement: "Placement") -> "Sandbox":
    from mlebench.sandbox import best_sandbox, sandbox_named

    if agent.host_only:
        return sandbox_named("process")
    if named == "auto" and placement.is_remote:
        return sandbox_named("bubblewrap")  # the most common on nodes, which may have others than this machine
    return best_sandbox() if named == "auto" else sandbox_named(named)


def _requested_limits(options: dict[str, Any], gpus: str | None) -> "tuple[Requested, str | None]":
    """The requested limits and GPUs; a container's settings fill in what the command line leaves open."""
    from mlebench.records.group import Requested
    from mlebench.run.container_config import read_container_config

    names = {"seconds": "time_limit", "memory": "memory", "cpus": "cpus", "shm": "shm"}
    requested = Requested(**{name: options[option] for name, option in names.items()})
    if options["container_config"]:
        from_file, listed, runtime = read_container_config(options["container_config"])
        requested = msgspec.structs.replace(from_file, **requested.limits())
        gpus = gpus or (None if listed is None else ",".join(listed) or "none")
        options["runtime"] = runtime or options["runtime"]
    return requested, gpus


def _competitions(registry: Registry, options: dict[str, Any]) -> list[str]:
    """Every named competition once, in the order given."""
    ids = [*options["ids"], *(id for split in options["splits"] for id in registry.get_split(split))]
    ids += listed(options["listing"])
    if not ids:
        raise click.UsageError("name competitions with -c, --split or --list")
    for id in ids:
        registry.competition_dir(id)
    return list(dict.fromkeys(ids))


def _like(options: dict[str, Any]) -> dict[str, Any]:
    """The earlier group's options, unless they are overridden now."""
    from mlebench.records.run_groups import find_group

    path = Path(options["like"])
    if path.is_file():
        options, then, model = _like_bundle(path, options)
    else:
        runs_dirs = runs_dirs_at(options["runs_dir"], options["data_dir"])
        then, model = _like_folder(path if path.is_dir() else find_group(options["like"], *runs_dirs).paths.root)
    context = click.get_current_context()
    if options["agent"] or options["agent_command"]:
        then.pop("agent_options", None)  # they are another agent's
    chosen = {
        name: then[name] if name in then and _is_default(context, name) else value for name, value in options.items()
    }
    _say_if_other_material(chosen["knowledge"], then["knowledge_sha256"])
    return chosen | {"like_model": model if chosen["network"] == "model" else None}


def _say_if_other_material(folder: Path | None, sha256: str | None) -> None:
    from mlebench.run.knowledge import identity

    if folder and sha256 and folder.is_dir() and identity(folder) != sha256:
        say(f"Warning: the files in {folder} are not those that the earlier runs were given as --knowledge.")


def _like_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    from mlebench.records.run_groups import Group, Run, require_ours
    from mlebench.run.plan import as_request_facts

    run = Run.read(folder) if paths.RunPaths(folder).record.is_file() else None
    group = Group.read(folder.absolute().parent if run else folder)
    require_ours(group)
    facts = as_request_facts(group.record)
    limits = facts.pop("limits")
    then = {
        **facts,
        "agent": facts["agent_source"],
        "ids": [run.record.competition] if run else facts["competitions"],
        "time_limit": limits.seconds,
        **{name: getattr(limits, name) for name in ("memory", "cpus", "shm")},
        "data_dir": Path(group.record.data_dir) if group.record.data_dir else None,
        "knowledge": Path(facts["knowledge"]) if facts["knowledge"] else None,
    }
    return then, group.record.model and msgspec.to_builtins(group.record.model)


def _like_bundle(path: Path, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]:
    """The options of a stranger's group that make runs comparable, and none that could endanger this machine."""
    from mlebench.bundles.again import as_options, model_of
    from mlebench.bundles.reading import read_bundle

    bundle = read_bundle(path)
    options["bundle"] = bundle  # differences are reported once everything is planned
    then = as_options(bundle, options)
    return options | {"like": f"{bundle.group.record.id} (bundle {bundle.sha256})"}, then, model_of(bundle)


def _say_what_differs(group: "Group", bundle: "Bundle") -> None:
    from mlebench.bundles.again import differences

    if model := group.record.model:
        say(f"Model: {', '.join(model.models)} at {model.endpoint}, budget of a run: {model.budget or 'none'}")
    for difference in differences(bundle, group.record):
        say(f"Differs from the bundle: {difference}")


def _is_default(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is None or source.name == "DEFAULT"


def _prepare_twins(registry: Registry, ids: Sequence[str]) -> None:
    from mlebench.cli.output import track
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource
    from mlebench.data.state import preparation_fault

    competitions = [registry.get_competition(id) for id in ids]
    lacking = [competition for competition in competitions if preparation_fault(competition)]
    for competition in track(lacking, lambda competition: f"twin of {competition.id}"):
        prepare(competition, TwinSource())


def _require_model(group: "Group", retries: Sequence[str], placement: "Placement") -> None:
    """What a fresh run group is refused for, before anything is repeated."""
    from mlebench.gateway.access import ModelAccess
    from mlebench.run.group import to_do
    from mlebench.run.model import require_model

    if group.record.model and (count := to_do(group, retries)):
        require_model(ModelAccess.from_facts(group.record.model), count, elsewhere=placement.is_remote)


def _execute(group: "Group", workers: int, gpus: "Choice", retries: Sequence[str], placement: "Placement") -> None:
    from mlebench.cli.live import print_runs, say_why
    from mlebench.core.outcomes import NOT_THE_AGENTS_FAULT
    from mlebench.records.run_groups import Group, unfinished
    from mlebench.run.group import finished_report, retry
    from mlebench.run.hosts import stop_line, stopped_hosts

    if retries:
        say(f"Runs to repeat: {retry(group, retries)}")
        group = Group.read(group.paths.root)
    runs = list(group.runs())  # read once: there may be thousands
    report, stop = finished_report(group, runs), None
    if report is None:
        report, stop = _do_the_rest(group, workers, gpus, placement)
        runs = list(group.runs())
    print_runs(runs)
    say_why(group, runs)
    _say_unstored(runs)
    if stop:
        say(f"{stop} `mlebench run --resume {group.paths.root}` continues it.")
        raise SystemExit(130)
    if report is None:
        for host, reason in stopped_hosts(group.paths).items():
            say(f"{stop_line(host, reason)}. Mend that host; resuming lets it try again.")
        say(f"{len(unfinished(group))} runs have not ended. `mlebench run --resume {group.paths.root}` continues them.")
        raise SystemExit(1)
    say(f"Grading report: {report}")
    if _say_ungraded(group, runs) or any(run.record.ended in NOT_THE_AGENTS_FAULT for run in runs):
        raise SystemExit(1)


def _say_ungraded(group: "Group", runs: "Sequence[Run]") -> bool:
    """Say which submissions could not be graded, through no fault of theirs, and what to do about it."""
    from mlebench.core.outcomes import UNGRADED_STATUSES

    reports = {run.paths.root.name: run.record.report for run in runs if run.record.report}
    ungraded = {name: report for name, report in reports.items() if report.status in UNGRADED_STATUSES}
    for name, report in ungraded.items():
        say(f"{name} was not graded: {report.reason}")
    if ungraded:
        say(f"`mlebench grade {group.paths.root}` grades the submissions again.")
    return bool(ungraded)


def _say_unstored(runs: "Sequence[Run]") -> None:
    from mlebench.records.run import RUNNING
    from mlebench.run.execute import unstored_result

    for run in runs:
        if run.state != RUNNING and (work := unstored_result(run)):  # otherwise, another process may be storing it
            say(f"{run.paths.root.name}: the agent has ended, but its result is not stored. It is kept in {work}")
            say("If the disk is full, free some space before you resume.")


def _do_the_rest(
    group: "Group", workers: int, gpus: "Choice", placement: "Placement"
) -> tuple[Path | None, str | None]:
    """Do the runs that have not ended; return the report, if all have, and why it stopped, if somebody stopped it."""
    from mlebench.cli.live import live_view
    from mlebench.records.run_groups import Group, unfinished
    from mlebench.run.executors import Attended
    from mlebench.run.group import finish
    from mlebench.run.local import LocalExecutor
    from mlebench.run.schedulers import scheduler_for

    if placement.is_remote:
        scheduler = scheduler_for(group, placement, workers)
        if warning := scheduler.warning():
            say(f"Warning: {warning}.")
        executor = Attended(scheduler, group.paths)
    else:
        executor = LocalExecutor(group.paths, workers, gpus)
    with live_view(group) as tick:
        executor.run(unfinished(group), tick)
    stop = _stop_text(executor.is_cancelled, placement) if executor.interrupts or executor.is_cancelled else None
    try:
        return finish(Group.read(group.paths.root)), stop
    except OSError as error:
        if error.errno not in OF_DISKS:
            raise
        say(f"{group.paths.root}: {reason_of(error)}")
        return None, stop


def _stop_text(is_cancelled: bool, placement: "Placement") -> str:
    if is_cancelled:
        return "Somebody has cancelled this group with `mlebench runs cancel`."
    if not placement.is_remote:
        return "Interrupted."
    return f"Detached: runs that {placement.name} has continue; `mlebench runs cancel` ends them."
