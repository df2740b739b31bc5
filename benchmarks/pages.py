"""How long standings take to load, for groups of thousands of runs.

    python benchmarks/pages.py --ours .venv/bin/python --scratch /big/disk

Cold is the first request to a server that has just started; warm is the second.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.sites import make_group

from mlebench.registry import Registry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, default=Path(sys.executable), metavar="PYTHON")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where runs are made")
    arguments = parser.parse_args()
    competitions = Registry().get_split("all")
    print(f"{'runs':>8}{'cold, s':>10}{'warm, s':>10}{'page, kB':>10}")
    for groups in (5, 45):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            runs = Path(scratch) / "runs"
            for number in range(groups):
                make_group(runs, f"agent{number}", competitions, skill=0.3 + 0.01 * number)
            cold, warm, size = measure(arguments.ours, runs)
        print(f"{groups * 3 * len(competitions):>8}{cold:>10.2f}{warm:>10.2f}{size / 1000:>10.0f}")


def measure(python: Path, runs: Path) -> tuple[float, float, int]:
    command = [python, "-m", "mlebench", "view", runs, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        address = server.stdout.readline().strip() + "index.html" if server.stdout else ""
        times = []
        body = b""
        for _ in range(2):
            begun = time.perf_counter()
            with urllib.request.urlopen(address) as answer:
                body = answer.read()
            times.append(time.perf_counter() - begun)
        server.terminate()
    return times[0], times[1], len(body)


if __name__ == "__main__":
    main()
