"""Record golden figures: what a reference installation makes of twins.

    python tests/golden/record.py --reference REFERENCE/bin/python ID...

Run it with the Python of this repository's virtual environment. It makes twins, has the other installation prepare and
grade them, in a scratch folder and in separate processes, and writes tests/golden/ID.json. It uses the other
installation as any client does: `registry`, `prepare_fn` and `grade_csv`. CONTRIBUTING.md says which versions to
install there, and what to do where sizes of the real data are hard-coded.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlebench.contract.file_hashes import file_hashes, raw_index
from mlebench.contract.golden import golden_text
from mlebench.contract.submissions import submissions
from mlebench.data.sources import TwinSource
from mlebench.kit import public_sample_bytes
from mlebench.registry import Registry

CASES = ((0, 1.0), (1, 1.0), (2, 0.5), (3, 3.0))
PREPARE = """
import sys
from pathlib import Path
from mlebench.registry import registry
competition = registry.set_data_dir(Path(sys.argv[1])).get_competition(sys.argv[2])
for folder in (competition.public_dir, competition.private_dir):
    folder.mkdir(parents=True)
competition.prepare_fn(raw=competition.raw_dir, public=competition.public_dir, private=competition.private_dir)
"""
GRADE = """
import json, math, sys
from pathlib import Path
from mlebench.grade import grade_csv
from mlebench.registry import registry
competition = registry.set_data_dir(Path(sys.argv[1])).get_competition(sys.argv[2])
scores = {}
for path in sys.argv[4:]:
    try:
        score = grade_csv(Path(path), competition).score
    except Exception:  # where it crashes, ours calls the submission invalid
        score = None
    scores[path] = "invalid" if score is None else "nan" if math.isnan(score) else float(score)
Path(sys.argv[3]).write_text(json.dumps(scores))
"""


def record(reference: Path, id: str, seed: int, size: float, scratch: Path) -> dict[str, Any]:
    competition = Registry(scratch).get_competition(id)
    TwinSource(seed, size).fetch(competition)
    where, facts = competition.paths, competition.submission
    index = raw_index(where.raw)  # before anything touches it
    _run(reference, PREPARE, scratch, id)
    files = file_hashes(where.prepared, index)
    sample, gold = public_sample_bytes(competition), competition.gold_submission.read_bytes()
    paths = {}
    for name, content in submissions(sample, gold, facts["id"], facts["targets"], facts.get("truth")).items():
        paths[name] = scratch / f"submission-{len(paths)}.csv"
        paths[name].write_bytes(content)
    _run(reference, GRADE, scratch, id, scratch / "scores.json", *paths.values())
    scores = json.loads((scratch / "scores.json").read_text())
    if scores[str(paths["gold"])] == "invalid":  # a crash of any kind counts as a refusal
        sys.exit(f"{id}: the reference cannot grade the right answers; are its leaderboards pointers of Git LFS?")
    return {"files": files, "scores": {name: scores[str(path)] for name, path in paths.items()}}


def _run(python: Path, program: str, *arguments: Any) -> None:
    subprocess.run([python, "-c", program, *map(str, arguments)], check=True, cwd=arguments[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, required=True, help="the Python of the other installation")
    parser.add_argument("--into", type=Path, default=Path(__file__).parent, help="where to write; default: here")
    parser.add_argument("ids", nargs="+", metavar="ID")
    options = parser.parse_args()
    for id in options.ids:
        figures = {}
        for seed, size in CASES:
            with tempfile.TemporaryDirectory() as scratch:
                figures[f"seed {seed}, size {size}"] = record(
                    options.reference.absolute(), id, seed, size, Path(scratch).resolve()
                )
        (options.into / f"{id}.json").write_text(golden_text(figures), encoding="utf-8")
        print(id)


if __name__ == "__main__":
    main()
