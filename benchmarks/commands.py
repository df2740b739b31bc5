"""How long commands take: ours against the reference, both installed and named by their interpreters.

    python benchmarks/commands.py --ours .venv/bin/python --reference /elsewhere/bin/python

The reference has no `list`; in its place, a program prints the same facts about the same competitions.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from measure import print_machine, time_command

LIST = """
import sys
from mlebench.data import is_dataset_prepared
from mlebench.registry import registry
for id in sys.argv[1:]:
    competition = registry.get_competition(id)
    print(competition.id, competition.grader.name, is_dataset_prepared(competition))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    ours, reference = arguments.ours.absolute(), arguments.reference.absolute()
    print_machine(ours, reference)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        id = "spaceship-titanic"
        time_command(ours.parent / "mlebench", "prepare", "-c", id, "--twin", "--data-dir", data)
        listing = subprocess.run([ours.parent / "mlebench", "list", "--json"], capture_output=True, check=True).stdout
        ids = [row["id"] for row in json.loads(listing)]
        grade = ["grade-sample", data / id / "prepared/public/sample_submission.csv", id, "--data-dir", data]
        rows = {
            "--help": ([ours.parent / "mlebench", "--help"], [reference.parent / "mlebench", "--help"]),
            "list": ([ours.parent / "mlebench", "list"], [reference, "-c", LIST, *ids]),
            "grade-sample": ([ours.parent / "mlebench", *grade], [reference.parent / "mlebench", *grade]),
        }
        print(f"{'command':14}{'ours':>10}{'reference':>12}{'ratio':>8}")
        for name, (mine, theirs) in rows.items():
            costs = [time_command(*command, cwd=Path(folder), repeat=arguments.repeat) for command in (mine, theirs)]
            print(
                f"{name:14}{costs[0].seconds:9.3f}s{costs[1].seconds:11.3f}s{costs[1].seconds / costs[0].seconds:8.1f}"
            )


if __name__ == "__main__":
    main()
