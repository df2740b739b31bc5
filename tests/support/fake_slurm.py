#!/usr/bin/env python3
"""sbatch, squeue, scancel, sinfo and scontrol as far as mlebench uses them, over a folder instead of a cluster.

FAKE_SLURM names the folder. Its file `mode` says what happens to a job: `run` does its tasks one after the other,
`hold` leaves them in the queue, `lose` forgets them. A job with a file `.dead` seems to run for a day. The file `nodes`
names the nodes, `bare` those without Python; a task runs on the first that its job does not exclude. The file `reason`
says why a task waits. While there is a file `down`, nothing answers; `refused` lists the commands that got no answer,
and `asked` lists all. If there is a file `complaint`, sbatch prints it and fails.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(os.environ["FAKE_SLURM"])
CPUS, MEGABYTES = 4, 16000  # of a node


def option(name: str, default: str = "") -> str:
    return next((word.partition("=")[2] for word in reversed(sys.argv) if word.startswith(f"--{name}=")), default)


def content(name: str, default: str = "") -> str:
    return (HERE / name).read_text().strip() if (HERE / name).exists() else default


def jobs() -> list[Path]:
    return sorted(HERE.glob("*.job"))


def sbatch() -> None:
    if complaint := content("complaint"):
        sys.exit(complaint)
    if "--test-only" in sys.argv:
        if int(option("cpus-per-task")) > CPUS or int(option("mem").rstrip("M")) > MEGABYTES:
            sys.exit("allocation failure: Requested node configuration is not available")
        return
    number = len(list(HERE.glob("*.call"))) + 1
    mode = (HERE / "mode").read_text()
    tasks, _, throttle = option("array").partition("-")[2].partition("%")
    job = HERE / f"{number}.job"
    if mode != "lose":
        words = [option("job-name"), sys.argv[-1], throttle, option("exclude")]
        job.write_text("\n".join([*words, *map(str, range(1, int(tasks) + 1))]))
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
        name, script, throttle, exclude, *tasks = job.read_text().split("\n")
        if not tasks:
            job.unlink()
            return
        node = next(node for node in content("nodes", "n1").split() if node not in exclude.split(","))
        env = {"SLURM_ARRAY_TASK_ID": tasks[0], "SLURMD_NODENAME": node, "SLURM_JOB_ID": f"{job.stem}{tasks[0]}"}
        text = Path(script).read_text()
        if node in content("bare").split():
            text = re.sub("^python=.*", "python=/nowhere/python", text, flags=re.MULTILINE)
        subprocess.run(["bash", "-c", text], env={**os.environ, **env}, check=False)
        part = job.with_suffix(".part")
        part.write_text("\n".join([name, script, throttle, exclude, *tasks[1:]]))
        if job.exists():  # it may have been cancelled meanwhile
            part.replace(job)


def squeue() -> None:
    for job in jobs():
        name, script, throttle, _, *tasks = job.read_text().split("\n")
        if name != option("name"):
            continue
        if option("states") == "PENDING":  # a line for what waits
            sys.stdout.write(f"{job.stem} {','.join(tasks)}%{throttle}\n")
            continue
        is_dead = (HERE / f"{job.stem}.dead").exists()
        facts = "1-02:03:04|R|None" if is_dead else f"0:00|PD|{content('reason', 'None')}"
        sys.stdout.write("".join(f"{job.stem}_{task}|{job.stem}|{task}|{facts}|{script}\n" for task in tasks))


def scancel() -> None:
    for word in sys.argv[1:]:
        if not word.startswith("--"):
            number, _, index = word.partition("_")
            job = HERE / f"{number}.job"
            head, tasks = job.read_text().split("\n")[:4], job.read_text().split("\n")[4:]
            job.write_text("\n".join([*head, *(task for task in tasks if task != index)]))
            return
    for job in jobs():
        if job.read_text().split("\n")[0] == option("name"):
            job.unlink()


def sinfo() -> None:
    for node in content("nodes", "n1").split():
        print(f"{node} all* {CPUS} {MEGABYTES}")


def scontrol() -> None:
    print(f"MaxArraySize            = {os.environ.get('FAKE_SLURM_ARRAY', '1001')}")


VERBS = {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sinfo": sinfo, "scontrol": scontrol}

if __name__ == "__main__":
    verb = Path(sys.argv[0]).name
    with (HERE / "asked").open("a") as asked:
        asked.write(f"{verb}\n")
    if (HERE / "down").exists() and verb != Path(__file__).resolve().name:
        with (HERE / "refused").open("a") as refused:
            refused.write(f"{verb}\n")
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    VERBS.get(verb, work)()
