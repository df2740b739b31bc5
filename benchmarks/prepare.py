"""How long preparing takes, and how much memory: ours against the reference on the same raw data, in one run.

    python benchmarks/prepare.py --ours .venv/bin/python --reference /elsewhere/bin/python --scratch /big/disk [ROW ...]

Raw data are large twins, made once in the scratch folder; every byte that both write is compared. `cp`, `ln` and
`unzip` are shown as the limit. Every round has new folders, and nothing is deleted before the end: for minutes after
many files are deleted, ext4 takes up to thirty times as long to create new ones.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from measure import REFERENCE_COMMAND, Cost, print_machine, time_command, time_prepare

TAXI, TABULAR = "new-york-city-taxi-fare-prediction", "tabular-playground-series-dec-2021"
IMAGES, TEXT = "histopathologic-cancer-detection", "text-normalization-challenge-english-language"
QUESTIONS, PRODUCTS = "tensorflow2-question-answering", "cdiscount-image-classification-challenge"
TRAIN = "simplified-nq-train.jsonl"
# 5 and 2 million rows, 100,000 files, 3 million rows; 360,000 and 240,000 records
SIZES = {TAXI: 4170.0, TABULAR: 4000.0, IMAGES: 1000.0, TEXT: 870.0, QUESTIONS: 300.0, PRODUCTS: 1000.0}
IMAGE_BYTES = 27_936
DOCUMENTS, OFFERING = 120, 20  # of the twin in one long record: about as long as the original's, with 120 candidates
LONG_COPIES = 4  # of all long records: 12,000
# What the reference cannot prepare at this size: it hard-codes sizes of the real data, or needs TensorFlow or the
# network.
LEFT_OUT = {
    *("AI4Code", "alaska2-image-steganalysis", "billion-word-imputation", "mlsp-2013-birds", TAXI),
    *("tabular-playground-series-may-2022", "vinbigdata-chest-xray-abnormalities-detection"),
    *("cassava-leaf-disease-classification", "siim-isic-melanoma-classification", "freesound-audio-tagging-2019"),
}
ROWS = ("taxi", "tabular", "images-zip", "images-folder", "text", "json-lines", "json-lines-long", "bson", "twins")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument(
        "--repeat", type=int, default=1, help="rounds, ours and the reference in turn; medians are shown"
    )
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], default=list(ROWS))
    arguments = parser.parse_args()
    places = (path.absolute() for path in (arguments.ours, arguments.reference, arguments.scratch))
    ours, reference, scratch = places
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as outputs:
        bench = Bench(ours, reference, scratch, Path(outputs), arguments.repeat)
        print_machine(bench.ours, bench.reference)
        for row in arguments.rows or ROWS:
            getattr(bench, row.replace("-", "_"))()


class Bench:
    def __init__(self, ours: Path, reference: Path, scratch: Path, outputs: Path, repeat: int):
        self.ours, self.reference, self.scratch, self.repeat = ours, reference, scratch, repeat
        self._outputs = (outputs / str(number) for number in count())

    def taxi(self) -> None:
        raw = self._compare_raw("taxi, 5 million rows", TAXI)
        self._limit("cp of train.csv", "cp", raw / "train.csv", next(self._outputs))

    def tabular(self) -> None:
        self._compare_raw("tabular, 2 million rows", TABULAR)

    def text(self) -> None:
        self._compare_raw("text, 3 million rows", TEXT)

    def json_lines(self) -> None:
        self._compare_raw("JSON lines, 360,000 records", QUESTIONS)

    def json_lines_long(self) -> None:
        raw, long = self._raw(QUESTIONS), self.scratch / f"{QUESTIONS}-long"
        if not long.exists():
            _lengthen(raw, long)
        self._compare("JSON lines, 12,000 long records", QUESTIONS, long, long)

    def bson(self) -> None:
        self._compare_raw("BSON, 240,000 documents", PRODUCTS)

    def images_folder(self) -> None:
        subprocess.run(["chmod", "-R", "u+w", str(self._raw(IMAGES))], check=True)  # as unpacking leaves them
        raw = self._compare_raw("images, from a raw folder", IMAGES)
        self._limit("cp -r of the raw folder", "cp", "-r", raw, next(self._outputs))
        self._limit("cp -rl (hard links)", "cp", "-rl", raw, next(self._outputs))

    def images_zip(self) -> None:
        """The reference unpacks the archive into a raw folder before it prepares, so that counts too."""
        raw, archive = self._raw(IMAGES), self.scratch / f"{IMAGES}.zip"
        if not archive.exists():
            _zip(raw, archive)
        start = time.perf_counter()
        unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])"
        unpacked = next(self._outputs)
        subprocess.run([str(self.reference), "-c", unpack, str(archive), str(unpacked)], check=True)
        self._compare("images, from a zip", IMAGES, archive, unpacked, before=time.perf_counter() - start)
        self._limit("unzip of the archive", "unzip", "-q", archive, "-d", next(self._outputs))

    def twins(self) -> None:
        """The same command in both programs, with archives of all default-size twins in place."""
        mlebench = self.ours.parent / "mlebench"
        listing = subprocess.run([str(mlebench), "list", "--json"], capture_output=True, text=True, check=True).stdout
        ids = [row["id"] for row in json.loads(listing) if row["id"] not in LEFT_OUT]
        made = next(self._outputs)
        subprocess.run([str(mlebench), "twin", *ids, "--data-dir", str(made)], check=True, capture_output=True)
        for id in ids:
            _zip(made / id / "raw", made / id / f"{id}.zip")
        (made / "ids.txt").write_text("\n".join(ids))
        options = ("prepare", "--list", made / "ids.txt", "--skip-verification", "--data-dir")
        rounds = []
        for _ in range(self.repeat):
            ours, reference = (_archives(made, ids, next(self._outputs)) for _ in range(2))
            os.sync()
            mine = time_command(mlebench, *options, ours, "--jobs", "2")
            command = (self.reference, "-W", "ignore", "-c", REFERENCE_COMMAND, *options, reference)
            rounds.append((mine, time_command(*command, cwd=made)))
        mine, theirs = (_median(side) for side in zip(*rounds, strict=True))
        _print_row(f"{len(ids)} twins, --jobs 2", mine, theirs)

    def _raw(self, id: str) -> Path:
        """Raw data of a large twin, without its marker, so that code expects the sizes of real data."""
        raw = self.scratch / id
        if not raw.exists():
            data = self.scratch / "making"
            command = [self.ours.parent / "mlebench", "twin", id, "--size", SIZES[id], "--data-dir", data]
            subprocess.run([str(part) for part in command], check=True, capture_output=True)
            if id == IMAGES:
                _enlarge(data / id / "raw")
            (data / id / "raw").rename(raw)
            shutil.rmtree(data)
        return raw

    def _compare_raw(self, what: str, id: str) -> Path:
        raw = self._raw(id)
        self._compare(what, id, raw, raw)
        return raw

    def _compare(self, what: str, id: str, ours_from: Path, reference_from: Path, before: float = 0.0) -> None:
        rounds = []
        for _ in range(self.repeat):
            ours, reference = next(self._outputs), next(self._outputs)
            os.sync()  # so that neither pays for earlier writes
            mine = time_prepare(self.ours, id, ours_from, ours, self.scratch)
            os.sync()
            rounds.append((mine, time_prepare(self.reference, id, reference_from, reference, self.scratch)))
            if _contents(ours) != _contents(reference):
                sys.exit(f"{what}: the bytes are not the same")
        mine, theirs = (_median(side) for side in zip(*rounds, strict=True))
        cpu = f"CPU {mine.cpu_seconds:.2f}s {theirs.cpu_seconds:.2f}s {theirs.cpu_seconds / mine.cpu_seconds:.2f} times"
        _print_row(what, mine, theirs._replace(seconds=theirs.seconds + before), f"{cpu}  same bytes")

    def _limit(self, what: str, *command: object) -> None:
        print(f"{'  limit: ' + what:34}{time_command(*command).seconds:8.1f}s")


def _median(costs: Sequence[Cost]) -> Cost:
    seconds, peaks, cpu_seconds = (median(values) for values in zip(*costs, strict=True))
    return Cost(seconds, int(peaks), cpu_seconds)


def _print_row(what: str, ours: Cost, reference: Cost, note: str = "") -> None:
    memory = ""
    if ours.peak_bytes:
        share = ours.peak_bytes / reference.peak_bytes
        memory = f"{ours.peak_bytes / 1e6:8.0f} MB {reference.peak_bytes / 1e6:8.0f} MB  x{share:.2f}"
    ratio = reference.seconds / ours.seconds
    print(f"{what:34}{ours.seconds:8.1f}s {reference.seconds:8.1f}s {ratio:6.1f} times {memory}  {note}", flush=True)


def _contents(folder: Path) -> dict[str, str]:
    """Every file's hash; for an archive, those of its members."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}!{member}": _hash(archive.read(member)) for member in archive.namelist()}
        else:
            with path.open("rb") as stream:
                found[name] = hashlib.file_digest(stream, "md5").hexdigest()
    return found


def _enlarge(raw: Path) -> None:
    """Give the twin's images the size of the originals, with incompressible bytes."""
    pool = os.urandom(1 << 20)
    for number, path in enumerate(sorted(raw.rglob("*.tif"))):
        content = path.read_bytes()
        start = number * 37 % ((1 << 20) - IMAGE_BYTES)
        path.write_bytes(content + pool[start : start + IMAGE_BYTES - len(content)])


def _lengthen(raw: Path, long: Path) -> None:
    """Give the twin's records the length of the originals: the documents of many become one."""
    records = []
    with (raw / TRAIN).open("rb") as lines:
        while some := [json.loads(line) for line in islice(lines, DOCUMENTS)]:
            offered = [span for record in some[:OFFERING] for span in record["long_answer_candidates"]]
            text = " ".join(record["document_text"] for record in some)
            records.append(json.dumps(some[0] | {"document_text": text, "long_answer_candidates": offered}) + "\n")
    long.mkdir()
    with (long / TRAIN).open("w") as target:
        for _ in range(LONG_COPIES):
            target.writelines(records)


def _hash(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def _archives(made: Path, ids: Sequence[str], folder: Path) -> Path:
    """A data directory with nothing but archives."""
    for id in ids:
        (folder / id).mkdir(parents=True)
        shutil.copyfile(made / id / f"{id}.zip", folder / id / f"{id}.zip")
    return folder


def _zip(folder: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            opened.write(path, path.relative_to(folder))


if __name__ == "__main__":
    main()
