"""How long a batch of submissions takes, and how much memory: ours against the reference, in one run.

    python benchmarks/grade.py --ours .venv/bin/python --reference /elsewhere/bin/python --scratch /big/disk [ROW ...]

`twins` is the sample submission of every twin; `large` is 20 submissions of a million rows: four each for AUC, log
loss, RMSE, accuracy and MAP@5. Both programs grade the same file of JSON lines with the same command, and every score
is compared. Memory is that of the largest process. Data is made once, in the scratch folder.

A competition's name is a row too: a noisy submission of the real number of rows, made by `full_size.py`, or with
`--size` the sample submission of its twin of that size. `all` is a row for each.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from measure import Cost, measure_command, print_machine

SAMPLES = """
import sys
from mlebench.registry import Registry
import json
registry = Registry(sys.argv[1])
ids = registry.list_competition_ids()
print(json.dumps({id: str(registry.get_competition(id).sample_submission) for id in ids}))
"""

LARGE = """
import sys
from pathlib import Path
import numpy as np
import pandas as pd
from mlebench.registry import Registry

registry, folder, rows, each = Registry(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
names = np.array([f"{number:07x}" for number in rng.permutation(rows)])
whales = np.array([f"w_{number:05x}" for number in range(4000)])
kinds = {
    "histopathologic-cancer-detection": (lambda: rng.integers(0, 2, rows), lambda truth: rng.random(rows).round(6)),
    "dogs-vs-cats-redux-kernels-edition": (lambda: rng.integers(0, 2, rows), lambda truth: rng.random(rows).round(6)),
    "new-york-city-taxi-fare-prediction": (
        lambda: rng.gamma(2, 6, rows).round(2), lambda truth: (truth + rng.normal(0, 3, rows)).round(4)
    ),
    "tabular-playground-series-dec-2021": (
        lambda: rng.integers(1, 8, rows), lambda truth: np.where(rng.random(rows) < 0.7, truth, 2)
    ),
    "whale-categorization-playground": (
        lambda: rng.choice(whales, rows),
        lambda truth: [" ".join(guesses) for guesses in np.column_stack([rng.choice(whales, (rows, 4)), truth])],
    ),
}
for id, (make, guess) in kinds.items():
    competition = registry.get_competition(id)
    key, (target,) = competition.submission["id"], competition.submission["targets"]
    keys = np.arange(rows) if key in ("Id",) or id.startswith("dogs") else names
    truth = make()
    for place in (competition.answers, competition.sample_submission):
        place.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({key: keys, target: truth}).to_csv(place, index=False)
    for number in range(each):
        pd.DataFrame({key: keys, target: guess(truth)}).sample(frac=1, random_state=number).to_csv(
            folder / f"{id}.{number}.csv", index=False
        )
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=3, help="rounds, in turn; medians are shown")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a large submission")
    parser.add_argument("--size", type=float, help="of the twin of a competition that is a row; default: full size")
    parser.add_argument("batches", nargs="*", metavar="ROW", help="twins, large, all, or competitions")
    arguments = parser.parse_args()
    ours, reference, scratch = (path.absolute() for path in (arguments.ours, arguments.reference, arguments.scratch))
    scratch.mkdir(parents=True, exist_ok=True)
    print_machine(ours, reference)
    batches = arguments.batches or ["twins", "large"]
    if "all" in batches:
        batches = sorted(json.loads(_output(ours, "-c", SAMPLES, scratch)))
    for batch in batches:
        if batch not in ("twins", "large") and arguments.size is None:
            _full_size(batch, scratch, ours, reference, arguments.repeat)
            continue
        size = {"twins": "1", "large": str(arguments.rows)}.get(batch, f"{arguments.size or 1:g}")
        data = scratch / f"{batch}-{size}"
        if not (data / "batch.jsonl").exists():
            lines = _large(ours, data, arguments.rows) if batch == "large" else _twins(ours, data, batch, size)
            _write_batch(data, lines)
        _print(f"{batch}, size {size}", *_compare(batch, data, ours, reference, arguments.repeat))


def _full_size(id: str, scratch: Path, ours: Path, reference: Path, repeat: int) -> None:
    """Print a row of a table; its data, up to 2 GB, is not kept."""
    twins = scratch / "default-twins"
    if not (twins / id).exists():
        _output(ours.parent / "mlebench", "prepare", "--competition-id", id, "--twin", "--data-dir", twins)
    with TemporaryDirectory(dir=scratch) as folder:
        data = Path(folder)
        made = json.loads(_output(ours, Path(__file__).with_name("full_size.py"), twins, data, id))
        _write_batch(data, [{"competition_id": id, "submission_path": made["submission"]}])
        mine, theirs = _compare(id, data, ours, reference, repeat)
    times = f"{mine.cpu_seconds:.2f} s | {theirs.cpu_seconds:.2f} s | {theirs.cpu_seconds / mine.cpu_seconds:.1f} ×"
    memory = f"{mine.peak_bytes / 1e6:,.0f} MB | {theirs.peak_bytes / 1e6:,.0f} MB"
    print(f"| {id} | {made['rows']:,} | {times} | {memory} |", flush=True)


def _write_batch(data: Path, lines: list[dict[str, str]]) -> None:
    (data / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)))


def _twins(ours: Path, data: Path, batch: str, size: str) -> list[dict[str, str]]:
    samples = json.loads(_output(ours, "-c", SAMPLES, data))
    chosen = samples if batch == "twins" else {batch: samples[batch]}
    which = ("--all",) if batch == "twins" else ("--competition-id", batch)
    _output(ours.parent / "mlebench", "prepare", *which, "--twin", "--size", size, "--data-dir", data, "--jobs", "2")
    return [{"competition_id": id, "submission_path": path} for id, path in chosen.items()]


def _large(ours: Path, data: Path, rows: int) -> list[dict[str, str]]:
    folder = data / "submissions"
    folder.mkdir(parents=True)
    _output(ours, "-c", LARGE, data, folder, rows, 4)
    return [
        {"competition_id": path.name.partition(".")[0], "submission_path": str(path)}
        for path in sorted(folder.iterdir())
    ]


def _compare(batch: str, data: Path, ours: Path, reference: Path, repeat: int) -> list[Cost]:
    """What a batch costs ours and the reference; scores that differ are printed."""
    rounds: list[tuple[Cost, Cost]] = []
    for _ in range(repeat):
        with TemporaryDirectory() as folder:
            options = ("grade", "--submission", data / "batch.jsonl", "--data-dir", data, "--output-dir")
            outputs = [Path(folder) / side for side in ("ours", "reference")]
            for output in outputs:
                output.mkdir()
            costs = [
                measure_command(python.parent / "mlebench", *options, output, cwd=Path(folder))
                for python, output in zip((ours, reference), outputs, strict=True)
            ]
            rounds.append((costs[0], costs[1]))
            mine, theirs = map(_scores, outputs)
            if mine != theirs:
                different = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
                print(f"{batch}: {len(different)} scores differ: {different[:5]}", file=sys.stderr)
            if unscored := [id for id, score in mine if score is None]:
                print(f"{batch}: no score for {unscored}", file=sys.stderr)
    return [Cost(*map(median, zip(*side, strict=True))) for side in zip(*rounds, strict=True)]


def _print(batch: str, mine: Cost, theirs: Cost) -> None:
    share = mine.peak_bytes / theirs.peak_bytes
    print(f"{batch}: ours, reference, ratio")
    print(f"  time     {mine.seconds:8.2f} s {theirs.seconds:8.2f} s {theirs.seconds / mine.seconds:6.1f} times")
    cpu = theirs.cpu_seconds / mine.cpu_seconds
    print(f"  CPU time {mine.cpu_seconds:8.2f} s {theirs.cpu_seconds:8.2f} s {cpu:6.1f} times")
    print(f"  memory   {mine.peak_bytes / 1e6:7.0f} MB {theirs.peak_bytes / 1e6:7.0f} MB  x{share:.2f}", flush=True)


def _scores(output: Path) -> list[tuple[str, float | None]]:
    """Competition and score of every report; NaN, which only the reference writes, counts as no score."""
    (path,) = output.glob("*_grading_report.json")
    reports = json.loads(path.read_text(), parse_constant=lambda _: None)["competition_reports"]
    return [(report["competition_id"], report["score"]) for report in reports]


def _output(*command: object) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
