"""How long `inspect plagiarism` takes, and how well it agrees with Dolos, on .py files of installed packages.

    python benchmarks/plagiarism.py time --from SITE_PACKAGES --scratch DIR [--files 1000 4000]
    python benchmarks/plagiarism.py plant --from SITE_PACKAGES --scratch DIR [--files 300]
    node dolos.mjs DIR/planted dolos.tsv           # see docs/understanding/inspecting.md
    python benchmarks/plagiarism.py agree --scratch DIR --dolos dolos.tsv

`plant` writes files and altered copies of some of them into one folder. `agree` compares all pairs: `dolos.tsv` has a
line for each, with the names of two files and their similarity, separated by tabs.
"""

import argparse
import ast
import builtins
import io
import json
import keyword
import os
import platform
import random
import resource
import shutil
import sys
import time
import tokenize
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

SEED = 14


def sample(folder: Path, count: int, smallest: int = 2_000, largest: int = 40_000) -> list[Path]:
    found = sorted(folder.rglob("*.py"))
    random.Random(SEED).shuffle(found)
    sizes = ((path, path.stat().st_size) for path in found)
    chosen, seen = [], set()
    for path, size in sizes:
        if smallest <= size <= largest and (text := path.read_bytes()) not in seen and _parses(text):
            seen.add(text)
            chosen.append(path)
            if len(chosen) == count:
                return chosen
    sys.exit(f"there are only {len(chosen)} such files in {folder}")


def _parses(text: bytes) -> bool:
    try:
        text.decode("utf-8")
        ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        return False
    return True


# Altered copies


def renamed(text: str) -> str:
    """Rename everything that is not Python's own."""
    kept = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
    lines, edits = text.splitlines(keepends=True), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string not in kept:
            edits.append((token.start, len(token.string), f"name_{zlib.crc32(token.string.encode()):x}"))
    for (line, column), length, name in reversed(edits):
        lines[line - 1] = lines[line - 1][:column] + name + lines[line - 1][column + length :]
    return "".join(lines)


def reordered(text: str) -> str:
    """Its top-level statements in another order, like cells of a notebook."""
    blocks = list(_blocks(text))
    random.Random(SEED).shuffle(blocks)
    return "\n".join(blocks)


def cut_out(text: str) -> str:
    """A short script: 60 lines or so from its middle."""
    blocks = list(_blocks(text))
    middle = len(blocks) // 2
    return "\n".join(_until(blocks[middle:] + blocks[:middle], 60))


def _blocks(text: str) -> Iterator[str]:
    lines = text.split("\n")
    for node in ast.parse(text).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        yield "\n".join(lines[first - 1 : node.end_lineno])


def _until(blocks: Sequence[str], lines: int) -> Iterator[str]:
    for block in blocks:
        if lines <= 0:
            return
        lines -= block.count("\n") + 1
        yield block


WAYS = {"renamed": renamed, "reordered": reordered, "cut": cut_out}


def plant(arguments: argparse.Namespace) -> None:
    folder = arguments.scratch / "planted"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    chosen = sample(arguments.source, arguments.files[0])
    for number, path in enumerate(chosen):
        text = path.read_text(encoding="utf-8")
        (folder / f"{number:04d}.py").write_text(text)
        way = [*WAYS, None, None, None][number % 6]
        if way and (way != "cut" or text.count("\n") > 200):
            (folder / f"{number:04d}_{way}.py").write_text(WAYS[way](text))
    print(f"{len(list(folder.iterdir()))} files in {folder}")


def agree(arguments: argparse.Namespace) -> None:
    import numpy as np
    from scipy.stats import spearmanr

    from mlebench.integrity.plagiarism.code_files import read_all
    from mlebench.integrity.plagiarism.corpus import Index
    from mlebench.integrity.subjects import sources_below

    reads = sorted(read_all(sources_below(arguments.scratch / "planted")), key=lambda read: read.name)
    index, names = Index([read.hashes for read in reads]), [read.name for read in reads]
    ours = np.array([index.similarities(read.hashes) for read in reads])
    held = np.array([index.overlap(read.hashes).distinct / max(1, len(set(read.hashes))) for read in reads])
    place = {name: number for number, name in enumerate(names)}
    theirs = np.zeros_like(ours)
    for line in arguments.dolos.read_text().splitlines():
        left, right, similarity = line.split("\t")[:3]
        theirs[place[left], place[right]] = theirs[place[right], place[left]] = float(similarity)
    upper = np.triu_indices(len(names), 1)
    print(f"{len(names)} files, {len(upper[0])} pairs")
    print(f"Spearman's rank correlation of similarities: {spearmanr(ours[upper], theirs[upper])[0]:.4f}")
    print(f"largest difference: {abs(ours - theirs)[upper].max():.3f}, mean {abs(ours - theirs)[upper].mean():.4f}")
    for way in WAYS:
        copies = [name for name in names if name.endswith(f"_{way}.py")]
        for what, values in (("containment, ours", held), ("similarity, ours", ours), ("similarity, Dolos", theirs)):
            ranks, of_copy = [], []
            for copy in copies:
                row = values[place[copy]].copy()
                row[place[copy]] = -1
                original = place[f"{copy[:4]}.py"]
                ranks.append(int((row > row[original]).sum()) + 1)
                of_copy.append(row[original])
            first = sum(rank == 1 for rank in ranks)
            print(f"{way}: {what}: original comes first for {first} of {len(copies)}, least {min(of_copy):.3f}")


def measure(arguments: argparse.Namespace) -> None:
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores")
    most = sample(arguments.source, max(arguments.files))
    for count in arguments.files:
        os.environ["XDG_CACHE_HOME"] = str(arguments.scratch / "cache")
        corpus, code = arguments.scratch / f"corpus-{count}", arguments.scratch / "code"
        for folder in (arguments.scratch / "cache", corpus, code):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for number, path in enumerate(most[:count]):
            shutil.copyfile(path, corpus / f"{number:04d}.py")
        (code / "main.py").write_text(renamed(most[0].read_text(encoding="utf-8")))
        lines = arguments.scratch / "runs.jsonl"
        lines.write_text(json.dumps({"competition_id": "spaceship-titanic", "code_path": str(code)}) + "\n")
        command = ["inspect", "plagiarism", str(lines), "--corpus", str(corpus)]
        for again in ("first", "again, with fingerprints kept"):
            print(f"{count} files, {again}: {_timed(command)}", flush=True)


def _timed(command: list[str]) -> str:
    import subprocess

    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "mlebench", *command], check=True)
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return f"{wall:.1f} s, the largest process {peak:.0f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("time", "plant", "agree"))
    parser.add_argument("--from", dest="source", type=Path, help="A folder with .py files.")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--files", type=int, nargs="+", default=[300])
    parser.add_argument("--dolos", type=Path)
    arguments = parser.parse_args()
    {"time": measure, "plant": plant, "agree": agree}[arguments.what](arguments)


if __name__ == "__main__":
    main()
