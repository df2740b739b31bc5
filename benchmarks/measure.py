"""What the benchmarks share: run a program in an interpreter, and measure its time and peak memory."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PREPARE = """
import json, resource, sys, time
from pathlib import Path
id, raw, out = sys.argv[1:4]
start = time.perf_counter()
from mlebench.registry import registry
competition = registry.get_competition(id)
folders = [Path(out) / side for side in ("public", "private")]
for folder in folders:
    folder.mkdir(parents=True)
competition.prepare_fn(raw=Path(raw), public=folders[0], private=folders[1])
seconds, usage = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime]))
"""

# The reference's own command, except that it does not ask Kaggle about archives that are already there.
REFERENCE_COMMAND = """
from mlebench import data
data.download_dataset = lambda competition_id, download_dir, **_: download_dir / f"{competition_id}.zip"
from mlebench.cli import main
main()
"""


class Cost(NamedTuple):
    seconds: float
    peak_bytes: int = 0
    cpu_seconds: float = 0.0  # more telling than `seconds` when the machine is busy


def time_command(*command: object, cwd: Path | None = None, repeat: int = 1) -> Cost:
    """The best time of several runs: the least disturbed one."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run([str(part) for part in command], cwd=cwd, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return Cost(min(times))


def measure_command(*command: object, cwd: Path | None = None) -> Cost:
    """Time, and the memory of the largest process: the command itself or one it waited for, directly or not."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(part) for part in command], cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(f"{command[0]} failed:\n{output.read().decode(errors='replace')[-2000:]}")
    return Cost(time.perf_counter() - start, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def time_prepare(python: Path, id: str, raw: Path, out: Path, cwd: Path) -> Cost:
    """Prepare one competition in an installation: both know `registry.get_competition(id).prepare_fn`."""
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", PREPARE, id, str(raw), str(out)], cwd=cwd, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{python} could not prepare {id}:\n{done.stderr[-2000:]}")
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def versions(python: Path) -> str:
    program = (
        "import importlib.metadata as m, sys\n"
        "print('Python', sys.version.split()[0], *(f'{n} {m.version(n)}' for n in ('mlebench', 'pandas', 'numpy')))"
    )
    return subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def print_machine(ours: Path, reference: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"machine: {platform.machine()}, {cores} cores, {platform.system()} {platform.release()}")
    print(f"ours: {versions(ours)}")
    print(f"reference: {versions(reference)}")
