"""Slurm, through sbatch, squeue and scancel: an array of jobs, each of which does one run.

It needs neither accounting (`sacct`) nor requeueing. A task of an array finds its folder in a list beside its script in
the group's folder; squeue names the script, so nothing else is needed to tell which task has which run.
"""

import math
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from mlebench.core.files import write_whole
from mlebench.core.paths import RunPaths
from mlebench.records.run_groups import Group, limits_of
from mlebench.run.executors import Resources, SchedulerError, SchedulerJob, job_name
from mlebench.run.hosts import JOB_LOG_VARIABLE, NODE_VARIABLE
from mlebench.run.signals import PARENT_VARIABLE, STARTER

OURS = ("array", "job-name", "parsable", "wait", "wrap", "test-only", "chdir")  # options that users may not set
NO_SUCH_NODE = "node configuration is not available"  # in Slurm's words
_SCRIPT = """#!/bin/bash
# Task N of this array does the run on line N of the list.
python={python}
export {node}=${{SLURMD_NODENAME:-$(hostname)}} {job_log}={log_path}
folder={root}/$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" {list})
if ! [ -d "$folder" ]; then
    echo "$(hostname) cannot see $folder: the runs directory must be on a disk that all nodes share" >&2
    exit 2
fi
exec >>"$folder/{log}" 2>&1
if ! [ -x "$python" ]; then
    message="${node} has no $python: mlebench must be installed on a disk that all nodes share"
    echo "$message"
    mkdir -p {hosts} && echo "$message" >>{hosts}/"${node}"
    exit 2
fi
# In the place of this shell, so that signals of Slurm reach it.
export {parent}={starter}
exec "$python" -P -m mlebench run exec "$folder" --gpus "${{SLURM_JOB_GPUS:-}}"
"""


class Slurm:
    """The jobs of one group."""

    name = "slurm"

    def __init__(self, group: Group, workers: int, options: Mapping[str, str]):
        _refuse_ours(options)
        self._group = group
        self._workers = workers
        self._options = options
        self._name = job_name(group)

    def submit(self, folders: Sequence[Path], avoid: Collection[str] = ()) -> Sequence[Path]:
        """Submit as many arrays as the site's size limit requires; together they run at most `workers` tasks.

        Slurm limits each array alone. So while earlier ones could use all workers, nothing is submitted.
        """
        workers = self._workers - self._reserved()
        if workers <= 0:
            return []
        size = self._largest_array
        arrays = [folders[start : start + size] for start in range(0, len(folders), size)]
        lanes = min(len(arrays), workers)
        last: dict[int, str] = {}
        for number, part in enumerate(arrays):
            lane = number % lanes
            throttle = workers // lanes + (lane < workers % lanes)
            after = [f"--dependency=afterany:{last[lane]}"] if lane in last else []
            last[lane] = self._submit(part, throttle, [*after, *self._exclude(avoid)])
        return folders

    def _reserved(self) -> int:
        """How many tasks of this group may be running at a time, of those in the queue."""
        queue = self._queue()
        if not queue:
            return 0
        tasks = Counter(task.array for task in queue)
        running = Counter(task.array for task in queue if task.is_running)
        # A waiting array is one line, such as `12 3-9%2`.
        lines = _ask("squeue", "--noheader", "--states=PENDING", f"--name={self._name}", "--format=%F %K").splitlines()
        throttles = {
            match[1]: int(match[2]) for line in lines if (match := re.fullmatch(r"(\d+) \S*%(\d+)", line.strip()))
        }
        return sum(max(running[array], min(tasks[array], throttles.get(array, tasks[array]))) for array in tasks)

    def _exclude(self, avoid: Collection[str]) -> list[str]:
        excluded = [*filter(None, [self._options.get("exclude")]), *sorted(avoid)]
        return [f"--exclude={','.join(excluded)}"] if excluded else []

    def _submit(self, folders: Sequence[Path], throttle: int, more: list[str]) -> str:
        script = self._write(folders)
        command = ["sbatch", "--parsable", f"--job-name={self._name}", f"--array=1-{len(folders)}%{throttle}"]
        command += [f"--chdir={self._group.paths.root}", f"--output={script.with_suffix('.log')}"]
        need = Resources.of(limits_of(self._group), self._group.record.gpus_per_run or 0)
        command += ["--open-mode=append", *_request(need, self._options), *more]
        return _ask(*command, str(script)).strip().partition(";")[0]

    def _write(self, folders: Sequence[Path]) -> Path:
        """The script and, beside it, the list of runs: a name on each line."""
        scripts = self._group.paths.slurm
        scripts.mkdir(exist_ok=True)
        number = 1 + max((int(path.stem) for path in scripts.glob("*.sh")), default=0)
        while True:
            script = scripts / f"{number}.sh"
            try:
                script.touch(exist_ok=False)
                break
            except FileExistsError:  # another command is submitting at the same time
                number += 1
        listed = script.with_suffix(".txt")
        write_whole(listed, (f"{folder.name}\n" for folder in folders))
        names = {"root": self._group.paths.root, "list": listed, "python": sys.executable}
        names |= {"hosts": self._group.paths.hosts, "log_path": script.with_suffix(".log")}
        quoted = {name: shlex.quote(str(value)) for name, value in names.items()}
        words = {"log": RunPaths(scripts).runner_log.name, "parent": PARENT_VARIABLE, "starter": STARTER}
        words |= {"node": NODE_VARIABLE, "job_log": JOB_LOG_VARIABLE}
        write_whole(script, _SCRIPT.format(**quoted, **words))
        return script

    @cached_property
    def _largest_array(self) -> int:
        for line in _ask("scontrol", "show", "config").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "MaxArraySize" and value.strip().isdigit():
                return max(1, int(value) - 1)
        return 1000

    def jobs(self) -> dict[Path, SchedulerJob]:
        return {folder: SchedulerJob(_seconds(task.elapsed), task.waits_for) for task, folder in self._tasks()}

    def _tasks(self) -> Iterator[tuple["_SqueueLine", Path]]:
        """What is in the queue, each with its folder."""
        lists: dict[str, list[str]] = {}
        for task in self._queue():
            if task.script not in lists:
                listed = self._group.paths.slurm / Path(task.script).with_suffix(".txt").name
                lists[task.script] = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
            names = lists[task.script]
            if task.index.isdigit() and int(task.index) <= len(names):
                yield task, self._group.paths.root / names[int(task.index) - 1]

    def nodes(self) -> set[str]:
        return {node.name for node in _nodes(self._options)}

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        if folders is None:
            count = len(self._queue())
            if count:
                _ask("scancel", f"--name={self._name}")
            return count
        tasks = [task.id for task, folder in self._tasks() if folder in folders]
        if tasks:
            _ask("scancel", *tasks)
        return len(tasks)

    def _queue(self) -> list["_SqueueLine"]:
        command = ["squeue", "--noheader", "--array", f"--name={self._name}", f"--format={_SqueueLine.FORMAT}"]
        return [_SqueueLine(*line.strip().split("|", 6)) for line in _ask(*command).splitlines()]

    def warning(self) -> str | None:
        own = limits_of(self._group).seconds
        for name in ("time", "time-min"):
            limit = _time_limit(self._options.get(name, ""))
            if limit is not None and limit < own:
                return (
                    f"Slurm's time limit ({name}={self._options[name]}) is below that of the runs ({own:g} s): Slurm "
                    "ends them first, and such a run does not count"
                )
        return None


@dataclass(frozen=True)
class _SqueueLine:
    """A line of squeue."""

    FORMAT: ClassVar[str] = "%i|%F|%K|%M|%t|%r|%o"

    id: str
    array: str
    index: str  # in its array
    elapsed: str
    state: str
    reason: str
    script: str

    @property
    def is_running(self) -> bool:
        return self.state != "PD"

    @property
    def waits_for(self) -> str | None:
        return None if self.is_running or self.reason == "None" else self.reason


@dataclass(frozen=True)
class _SinfoLine:
    """A line of sinfo."""

    name: str
    cpus: int
    megabytes: int


def refusal(need: Resources, options: Mapping[str, str]) -> str | None:
    """Why Slurm would never start a job; None if it would, now or later. SchedulerError if it would not take it."""
    _refuse_ours(options)
    try:
        _ask("sbatch", "--test-only", *_request(need, options), "--wrap=true")
    except SchedulerError as error:
        # Slurm answers the same for nodes that are too small and for nodes that are drained: only the first is final.
        if NO_SUCH_NODE not in str(error):
            raise
        nodes = _nodes(options)
        megabytes = need.memory >> 20
        if not nodes or any(node.cpus >= need.cpus and node.megabytes >= megabytes for node in nodes):
            return None
        return (
            f"{error}. A run needs {need.cpus} CPUs and {megabytes} MB; the largest nodes have "
            f"{max(node.cpus for node in nodes)} CPUs and {max(node.megabytes for node in nodes)} MB: "
            "lower --cpus or --memory"
        )
    return None


def _refuse_ours(options: Mapping[str, str]) -> None:
    if odd := [name for name in options if name in OURS]:
        raise SchedulerError(f"--slurm-option {odd[0]}: mlebench sets this itself; leave it out")


def _request(need: Resources, options: Mapping[str, str]) -> list[str]:
    """What a job asks for: a user's options take precedence over ours."""
    defaults = {"cpus-per-task": need.cpus, "mem": f"{need.memory >> 20}M", "time": math.ceil(need.seconds / 60)}
    if need.gpus and not any(name.startswith("gpus") for name in options):
        defaults["gres"] = f"gpu:{need.gpus}"
    ours = [f"--{name}={value}" for name, value in defaults.items() if name not in options]
    theirs = [f"--{name}={value}" if value else f"--{name}" for name, value in options.items()]
    return ["--nodes=1", "--ntasks=1", *ours, *theirs]


def _time_limit(text: str) -> float | None:
    """Seconds in a time limit as sbatch reads it: minutes, or with colons or days; None if there is none."""
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in (*parts, *([days] if dash else []))):
        return None
    numbers = [int(part) for part in parts]
    if dash:  # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    else:  # minutes[:seconds], or hours:minutes:seconds
        hours, minutes, seconds = numbers if len(numbers) == 3 else (0, *numbers, 0)[:3]
    return (int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds) or None


def _seconds(text: str) -> float:
    """Parse [days-][[hours:]minutes:]seconds; 0 for a waiting task."""
    days, _, rest = text.rpartition("-")
    seconds = 0
    for part in rest.split(":"):
        seconds = seconds * 60 + (int(part) if part.isdigit() else 0)
    return seconds + 86400 * (int(days) if days.isdigit() else 0)


def _ask(*command: str) -> str:
    """The output of a Slurm command."""
    if shutil.which(command[0]) is None:
        raise SchedulerError(f"there is no `{command[0]}` here: use --executor slurm on a host that submits to Slurm")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise SchedulerError(f"{command[0]} does not answer: is slurmctld up? Try `scontrol ping`") from None
    if done.returncode != 0:
        raise SchedulerError(f"{command[0]} failed: {_error_in(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout


def _error_in(output: str) -> str:
    """What a Slurm command says is wrong: its errors without the program's name, and no advice to read the help."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and "--help" not in line]
    errors = [line for line in lines if ": error: " in line] or lines
    return "; ".join(dict.fromkeys(re.sub(r"^[\w-]+: (error: )?", "", line) for line in errors[:4]))


def _nodes(options: Mapping[str, str], *more: str) -> list[_SinfoLine]:
    """The nodes of the requested partition, or of the default one, in whatever state."""
    chosen = [f"--partition={options['partition']}"] if options.get("partition") else []
    lines = _ask("sinfo", "--noheader", "--Node", "--format=%N %P %c %m", *chosen, *more).splitlines()
    rows = [line.split() for line in lines]
    default = [row for row in rows if row[1].endswith("*")] if not chosen else []
    return [_SinfoLine(name, int(cpus), int(megabytes)) for name, _, cpus, megabytes in default or rows]


def nodes(options: Mapping[str, str]) -> list[str]:
    """Nodes that accept work, in the requested partition."""
    return list(dict.fromkeys(node.name for node in _nodes(options, "--states=idle,mixed,allocated")))


def submit_to(node: str, name: str, command: Sequence[str], options: Mapping[str, str], log: Path) -> None:
    """Submit a small job to one node."""
    arguments = [f"--{key}={options[key]}" for key in ("partition", "account", "qos") if key in options]
    arguments += [f"--nodelist={node}", f"--job-name={name}", "--time=5", "--mem=1000M", f"--output={log}"]
    _ask("sbatch", *arguments, "--wrap", f"exec {shlex.join(command)}")
