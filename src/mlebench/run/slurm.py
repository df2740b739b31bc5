"""Slurm, through sbatch, squeue and scancel: an array of jobs, each of which does one run.

It needs neither accounting (`sacct`) nor requeueing. A task of an array finds its folder in a list beside its script in
the group's folder; squeue names the script, so nothing else is needed to tell which task has which run.
"""

import math
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from mlebench.files import write_whole
from mlebench.paths import RunPaths
from mlebench.run.execute import PARENT_VARIABLE, STARTER
from mlebench.run.executors import Resources, SchedulerError, job_name
from mlebench.run.records import Group

OURS = ("array", "job-name", "parsable", "wait", "wrap", "test-only", "chdir")  # options that users may not set
_SCRIPT = """#!/bin/bash
# Task N of this array does the run on line N of the list.
python={python}
folder={root}/$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" {list})
if ! [ -d "$folder" ]; then
    echo "$(hostname) cannot see $folder: the runs directory must be on a disk that all nodes share" >&2
    exit 2
fi
exec >>"$folder/{log}" 2>&1
if ! [ -x "$python" ]; then
    echo "$(hostname) has no $python: mlebench must be installed on a disk that all nodes share"
    exit 2
fi
# In the place of this shell, so that signals of Slurm reach it.
export {parent}={starter}
exec "$python" -P -m mlebench run exec "$folder" --gpus "${{SLURM_JOB_GPUS:-}}"
"""


class Slurm:
    """The jobs of one group."""

    name = "slurm"
    at_once: int | None = None  # an array has a throttle

    def __init__(self, group: Group, workers: int, options: Mapping[str, str]):
        if odd := [name for name in options if name in OURS]:
            raise SchedulerError(f"--slurm-option {odd[0]}: mlebench sets this itself; leave it out")
        self._group = group
        self._workers = workers
        self._options = options
        self._name = job_name(group)

    def submit(self, folders: Sequence[Path]) -> None:
        """Submit as many arrays as the site's size limit requires; together they run at most `workers` tasks."""
        size = self._largest_array
        arrays = [folders[start : start + size] for start in range(0, len(folders), size)]
        lanes = min(len(arrays), self._workers)
        last: dict[int, str] = {}
        for number, part in enumerate(arrays):
            lane = number % lanes
            throttle = self._workers // lanes + (lane < self._workers % lanes)
            after = [f"--dependency=afterany:{last[lane]}"] if lane in last else []
            last[lane] = self._submit(part, throttle, after)

    def _submit(self, folders: Sequence[Path], throttle: int, more: list[str]) -> str:
        script = self._write(folders)
        command = ["sbatch", "--parsable", f"--job-name={self._name}", f"--array=1-{len(folders)}%{throttle}"]
        command += [f"--chdir={self._group.paths.root}", f"--output={script.with_suffix('.log')}"]
        command += ["--open-mode=append", "--nodes=1", "--ntasks=1", *self._resources(), *more]
        command += [f"--{name}={value}" if value else f"--{name}" for name, value in self._options.items()]
        return _ask(*command, str(script)).strip().partition(";")[0]

    def _resources(self) -> list[str]:
        need = Resources.of(self._group)
        wishes = {"cpus-per-task": need.cpus, "mem": f"{need.memory >> 20}M", "time": math.ceil(need.seconds / 60)}
        if need.gpus and not any(name.startswith("gpus") for name in self._options):
            wishes["gres"] = f"gpu:{need.gpus}"
        return [f"--{name}={value}" for name, value in wishes.items() if name not in self._options]

    def _write(self, folders: Sequence[Path]) -> Path:
        """The script and, beside it, the list of runs: a name on each line."""
        place = self._group.paths.slurm
        place.mkdir(exist_ok=True)
        number = 1 + max((int(path.stem) for path in place.glob("*.sh")), default=0)
        while True:
            script = place / f"{number}.sh"
            try:
                script.touch(exist_ok=False)
                break
            except FileExistsError:  # another command is submitting at the same time
                number += 1
        listed = script.with_suffix(".txt")
        write_whole(listed, (f"{folder.name}\n" for folder in folders))
        names = {"root": self._group.paths.root, "list": listed, "python": sys.executable}
        quoted = {name: shlex.quote(str(value)) for name, value in names.items()}
        log = RunPaths(place).runner_log.name
        write_whole(script, _SCRIPT.format(**quoted, log=log, parent=PARENT_VARIABLE, starter=STARTER))
        return script

    @cached_property
    def _largest_array(self) -> int:
        for line in _ask("scontrol", "show", "config").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "MaxArraySize" and value.strip().isdigit():
                return max(1, int(value) - 1)
        return 1000

    def active(self) -> dict[Path, float]:
        return {folder: seconds for _, folder, seconds in self._tasks()}

    def _tasks(self) -> Iterator[tuple[str, Path, float]]:
        """What is in the queue: the task, its folder, and how long it has run."""
        lists: dict[str, list[str]] = {}
        for line in self._queue():
            task, index, elapsed, script = line.strip().split(" ", 3)
            if script not in lists:
                listed = self._group.paths.slurm / Path(script).with_suffix(".txt").name
                lists[script] = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
            if index.isdigit() and int(index) <= len(lists[script]):
                yield task, self._group.paths.root / lists[script][int(index) - 1], _seconds(elapsed)

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        if folders is None:
            count = len(self._queue())
            if count:
                _ask("scancel", f"--name={self._name}")
            return count
        tasks = [task for task, folder, _ in self._tasks() if folder in folders]
        if tasks:
            _ask("scancel", *tasks)
        return len(tasks)

    def _queue(self) -> list[str]:
        form = "--format=%i %K %M %o"  # task, its number in the array, the time it has run, the script
        return _ask("squeue", "--noheader", "--array", f"--name={self._name}", form).splitlines()


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
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SchedulerError(f"{command[0]} failed: {reason}")
    return done.stdout


def nodes(options: Mapping[str, str]) -> list[str]:
    """Nodes that accept work, in the requested partition."""
    chosen = [f"--partition={options['partition']}"] if "partition" in options else []
    lines = _ask("sinfo", "--noheader", "--Node", "--states=idle,mixed,allocated", "--format=%N", *chosen)
    return list(dict.fromkeys(lines.split()))


def submit_to(node: str, name: str, command: Sequence[str], options: Mapping[str, str], log: Path) -> None:
    """Submit a small job to one node."""
    kept = [f"--{key}={options[key]}" for key in ("partition", "account", "qos") if key in options]
    kept += [f"--nodelist={node}", f"--job-name={name}", "--time=5", "--mem=1000M", f"--output={log}"]
    _ask("sbatch", *kept, "--wrap", f"exec {shlex.join(command)}")
