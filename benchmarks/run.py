"""What running costs besides the agent: one run in each sandbox, many at once, and groups of thousands.

    python benchmarks/run.py --ours .venv/bin/python --scratch /big/disk

`--sandbox` names those to measure. After many runs it looks for leftovers: processes, mounts, containers, control
groups and temporary files.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

from measure import measure_command, time_command, versions

ID = "spaceship-titanic"
SUBMIT = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
LARGE = 20_000


class Bench:
    def __init__(self, python: Path, folder: Path, repeat: int):
        self.python, self.folder, self.repeat = python, folder, repeat
        self.mlebench = python.parent / "mlebench"
        self.data = folder / "data"
        time_command(self.mlebench, "prepare", "-c", ID, "--twin", "--data-dir", self.data)

    def run(self, runs: Path, *options: object) -> Path:
        """Run an agent; return the group's folder."""
        agent = ["--agent-command", SUBMIT] if "--agent" not in options else []
        time_command(self.mlebench, "run", *agent, "-c", ID, "--data-dir", self.data, "--runs-dir", runs, *options)
        (group,) = runs.iterdir()
        return group

    def one(self, sandbox: str) -> None:
        """Measure `run exec` of a program that only copies a file, less one import of pandas."""
        group = self.run(self.folder / f"one-{sandbox}", "--sandbox", sandbox)
        (run,) = group.glob(f"{ID}_*")
        costs = []
        for _ in range(self.repeat):
            record = json.loads((run / "run.json").read_text())
            shutil.rmtree(run / "result")
            (run / "run.json").write_text(json.dumps(record | {"state": "planned", "ended": None}))
            costs.append(cost(self.mlebench, "run", "exec", run))
        pandas = [cost(self.python, "-c", "import pandas") for _ in range(self.repeat)]
        for what, place in (("time", 0), ("time on CPUs", 1)):
            own, less = min(pair[place] for pair in costs), min(pair[place] for pair in pandas)
            print(
                f"one run in {sandbox}, {what}: {own:.2f} s, less {less:.2f} s for `import pandas`: {own - less:.2f} s"
            )

    def many(self, sandbox: str, count: int = 200, workers: int = 8) -> None:
        os.environ["MLEBENCH_BENCHMARK"] = mark = uuid.uuid4().hex
        start = time.perf_counter()
        options = ("--agent", "dummy", "--sandbox", sandbox, "--seeds", count, "--workers", workers)
        group = self.run(self.folder / f"many-{sandbox}", *options)
        seconds = time.perf_counter() - start
        records = [json.loads(path.read_text()) for path in group.glob("*/run.json")]
        finished = sum(record["ended"] == "finished" for record in records)
        del os.environ["MLEBENCH_BENCHMARK"]
        tokens = {attempt["token"] for record in records for attempt in record["attempts"]}
        left = [*left_behind(tokens | {mark}), *map(str, group.glob(".work*"))]
        print(f"{count} runs in {sandbox}, {workers} workers: {seconds:.0f} s, {finished} finished", end=", ")
        print(f"left behind: {left or 'nothing'}")

    def large(self) -> None:
        runs = self.folder / "large"
        program = f"""
from pathlib import Path
from mlebench.run.plan import make_plan, write_plan
from mlebench.run.request import Request
request = Request(agent="dummy", competitions=["{ID}"], data_dir="{self.data}", runs_dir=Path("{runs}"),
                  sandbox="process", seeds={LARGE})
write_plan(make_plan(request))
"""
        print(f"planning {LARGE} runs: {time_command(self.python, '-c', program).seconds:.1f} s")
        self._list(runs, "planned")
        (group,) = runs.iterdir()
        (one,) = self.run(self.folder / "ended", "--sandbox", "process").glob(f"{ID}_*/run.json")
        ended = json.loads(one.read_text())
        for path in group.glob("*/run.json"):
            own = {name: value for name, value in json.loads(path.read_text()).items() if name in ("run_id", "seed")}
            path.write_text(json.dumps(ended | own, indent=1))
        self._list(runs, "finished")
        finish = time_command(self.mlebench, "run", "--resume", group)
        print(f"--resume that writes the report of {LARGE} runs: {finish.seconds:.1f} s")
        commands = {
            "--resume with nothing to do": ("run", "--resume", group),
            "report": ("report", group, "--data-dir", self.data),
        }
        for name, command in commands.items():
            spent = min(
                (measure_command(self.mlebench, *command) for _ in range(self.repeat)), key=lambda spent: spent[2]
            )
            print(f"{name}: {spent.seconds:.2f} s, {spent.cpu_seconds:.2f} s of CPU, {spent.peak_bytes / 1e6:.0f} MB")

    def _list(self, runs: Path, what: str) -> None:
        groups = time_command(self.mlebench, "runs", "--runs-dir", runs, repeat=self.repeat).seconds
        (group,) = runs.iterdir()
        each = time_command(self.mlebench, "runs", "--runs-dir", runs, "list", group.name, repeat=self.repeat).seconds
        print(f"{LARGE} {what} runs: `runs` {groups:.2f} s, `runs list` {each:.2f} s")


def cost(*command: object) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a command; the latter are more telling when the machine is busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time_command(*command).seconds
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def left_behind(marks: set[str]) -> list[str]:
    """What runs have left on this machine: anything with one of these words in its name or environment."""
    there = Path("/proc/self/mounts").read_text().splitlines()
    there += map(str, Path(tempfile.gettempdir()).iterdir())
    there += map(str, Path("/sys/fs/cgroup").glob("**/mlebench-*"))
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                words = (folder / "cmdline").read_bytes() + b" " + (folder / "environ").read_bytes()
                there.append(f"process {folder.name}: {words!r}")
        except OSError:
            continue
    if shutil.which("docker"):
        listing = ["docker", "ps", "-a", "--format", "{{.Names}}"]
        there += subprocess.run(listing, capture_output=True, text=True).stdout.split()
    return [item[:200] for item in there if any(mark in item for mark in marks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--part", action="append", choices=["one", "large", "many"], help="default: all")
    parser.add_argument("--sandbox", action="append", choices=["bubblewrap", "docker", "process"])
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {versions(arguments.ours)}")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        bench = Bench(arguments.ours.absolute(), Path(folder), arguments.repeat)
        parts = arguments.part or ["one", "large", "many"]
        for sandbox in (arguments.sandbox or ["bubblewrap", "docker"]) if "one" in parts else ():
            bench.one(sandbox)
        if "large" in parts:
            bench.large()
        for sandbox in (arguments.sandbox or ["bubblewrap"]) if "many" in parts else ():
            bench.many(sandbox)


if __name__ == "__main__":
    main()
