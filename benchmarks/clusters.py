"""What our part of placing runs on a cluster costs: 10,000 runs through a scheduler that does nothing.

    python benchmarks/clusters.py --ours .venv/bin/python --scratch DIR

The scheduler is a fake Slurm (`tests/support/fake_slurm.py`) that leaves every task in its queue. A second program
writes the result of each run, as `run exec` would, and removes the task from the queue. So this measures planning,
submitting, watching and the report: all our work apart from the runs themselves.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

from measure import time_command, versions

ID = "spaceship-titanic"
COUNT = 10_000
FAKE = Path(__file__).parents[1] / "tests" / "clusters" / "fake_slurm.py"
SUBMIT = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args()
    print(versions(options.ours))
    scratch = options.scratch.absolute()
    mlebench = options.ours.absolute().parent / "mlebench"
    slurm = pretend_slurm(scratch)
    data, runs = scratch / "data", scratch / "runs"
    time_command(mlebench, "prepare", "-c", ID, "--twin", "--data-dir", data)
    ended = one_result(mlebench, data, scratch / "one")

    words = ["run", "--agent-command", SUBMIT, "-c", ID, "--data-dir", data, "--runs-dir", runs, "--sandbox", "process"]
    words += ["--executor", "slurm", "--seeds", options.count, "--workers", 100, "--cpus", 1, "--memory", "1g"]
    start = time.perf_counter()
    with (scratch / "said").open("wb") as said:
        process = subprocess.Popen([mlebench, *map(str, words)], stdout=said, stderr=said)
        spent = finish_everything(slurm, runs, ended, options.count)
        if process.wait() != 0:
            raise SystemExit((scratch / "said").read_text()[-2000:])
    seconds = time.perf_counter() - start - spent
    per_run = 1000 * seconds / options.count
    print(f"{options.count} runs through a scheduler: {seconds:.1f} s of ours, {per_run:.2f} ms for each run")

    (group,) = runs.iterdir()
    for what, command in (
        ("`runs`", ["runs", "--runs-dir", runs]),
        ("`runs list`", ["runs", "--runs-dir", runs, "list", group.name]),
        ("`--resume` of a group that has ended", ["run", "--resume", group]),
    ):
        print(f"{what}, {options.count} runs: {time_command(mlebench, *command, repeat=3).seconds:.2f} s")


def pretend_slurm(scratch: Path) -> Path:
    folder, programs = scratch / "slurm", scratch / "bin"
    folder.mkdir(parents=True)
    programs.mkdir()
    (folder / "mode").write_text("hold")
    for name in ("sbatch", "squeue", "scancel", "scontrol"):
        (programs / name).symlink_to(FAKE)
    os.environ |= {"FAKE_SLURM": str(folder), "PATH": f"{programs}:{os.environ['PATH']}"}
    return folder


def one_result(mlebench: Path, data: Path, runs: Path) -> dict[str, object]:
    """The record of a run that has ended."""
    named = ["--agent-command", SUBMIT, "-c", ID, "--data-dir", data, "--runs-dir", runs, "--sandbox", "process"]
    time_command(mlebench, "run", *named)
    (record,) = runs.glob(f"*/{ID}_*/run.json")
    return json.loads(record.read_text())


def finish_everything(slurm: Path, runs: Path, ended: dict[str, object], count: int) -> float:
    """End every run in the queue; return how long that took, which is not our cost."""
    while sum(len(job.read_text().split("\n")) - 2 for job in slurm.glob("*.job")) < count:
        time.sleep(0.05)
    start = time.perf_counter()
    for path in runs.glob(f"*/{ID}_*/run.json"):
        own = {name: value for name, value in json.loads(path.read_text()).items() if name in ("run_id", "seed")}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(ended | own, indent=1))
        part.replace(path)
    for job in slurm.glob("*.job"):
        job.unlink()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
