#!/usr/bin/env python3
"""sbatch, squeue, scancel and scontrol as far as mlebench uses them, over a folder instead of a cluster.

FAKE_SLURM names the folder. Its file `mode` says what happens to a job: `run` does its tasks one after the other,
`hold` leaves them in the queue, `lose` forgets them. A job with a file `.dead` seems to run for a day. While there is a
file `down`, nothing answers; `refused` lists the commands that got no answer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(os.environ["FAKE_SLURM"])


def option(name: str) -> str:
    return next(word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}="))


def jobs() -> list[Path]:
    return sorted(HERE.glob("*.job"))


def sbatch() -> None:
    number = len(list(HERE.glob("*.call"))) + 1
    mode = (HERE / "mode").read_text()
    last = int(option("array").partition("-")[2].partition("%")[0])
    job = HERE / f"{number}.job"
    if mode != "lose":
        job.write_text("\n".join([option("job-name"), sys.argv[-1], *map(str, range(1, last + 1))]))
    if mode == "run":
        command = [sys.executable, str(Path(__file__).resolve()), "work", str(job)]
        subprocess.Popen(command, stdin=-3, stdout=-3, stderr=-3, start_new_session=True)
    part = HERE / f"{number}.call.part"
    part.write_text(json.dumps(sys.argv[1:-1]))
    part.rename(part.with_suffix(""))  # last and whole: a test that sees it may change the mode
    print(number)


def work() -> None:
    job = Path(sys.argv[2])
    while job.exists():
        name, script, *tasks = job.read_text().split("\n")
        if not tasks:
            job.unlink()
            return
        subprocess.run(["bash", script], env={**os.environ, "SLURM_ARRAY_TASK_ID": tasks[0]}, check=False)
        part = job.with_suffix(".part")
        part.write_text("\n".join([name, script, *tasks[1:]]))
        part.replace(job)


def squeue() -> None:
    for job in jobs():
        name, script, *tasks = job.read_text().split("\n")
        if name == option("name"):
            elapsed = "1-02:03:04" if (HERE / f"{job.stem}.dead").exists() else "0:00"
            sys.stdout.write("".join(f"{job.stem}_{task} {task} {elapsed} {script}\n" for task in tasks))


def scancel() -> None:
    for word in sys.argv[1:]:
        if not word.startswith("--"):
            number, _, index = word.partition("_")
            job = HERE / f"{number}.job"
            job.write_text("\n".join(line for line in job.read_text().split("\n") if line != index))
            return
    for job in jobs():
        if job.read_text().split("\n")[0] == option("name"):
            job.unlink()


def scontrol() -> None:
    print(f"MaxArraySize            = {os.environ.get('FAKE_SLURM_ARRAY', '1001')}")


if __name__ == "__main__":
    verb = Path(sys.argv[0]).name
    if (HERE / "down").exists() and verb != Path(__file__).resolve().name:
        with (HERE / "refused").open("a") as refused:
            refused.write(f"{verb}\n")
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "scontrol": scontrol}.get(verb, work)()
