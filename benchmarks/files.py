"""What very many files cost: prepare, prepare again and verify a competition with empty images. Measures only ours.

    python benchmarks/files.py --ours .venv/bin/python --scratch /big/disk [--files 400000]

Each row is measured with a quarter of the files and with all, which gives the memory that one more file takes. Memory
is that of the largest process; CPU time is that of all.
"""

import argparse
import random
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Cost, measure_command

ID = "bms-molecular-translation"
# The data is not the published data, so the command would end with 1.
VERIFY = """
import sys
from mlebench.data.verification import verify
from mlebench.registry import Registry
verify(Registry(sys.argv[1]).get_competition(sys.argv[2]), processes=int(sys.argv[3]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--files", type=int, default=400_000)
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=arguments.scratch) as folder:
        few, many = (_measure(arguments.ours, Path(folder), count) for count in (arguments.files // 4, arguments.files))
    for what, cost in many.items():
        more = (cost.peak_bytes - few[what].peak_bytes) / (arguments.files * 3 / 4)
        time = f"{cost.seconds:8.1f} s{cost.cpu_seconds:8.1f} s CPU"
        print(f"{what:24}{time}{cost.peak_bytes / 1e6:8.0f} MB{more:8.0f} bytes for each file")


def _measure(ours: Path, folder: Path, count: int) -> dict[str, Cost]:
    raw, data = folder / f"raw-{count}", folder / f"data-{count}"
    # In a process of its own: what we hold ourselves would count as memory of the commands that we start.
    making = get_context("spawn").Process(target=_make_raw, args=(raw, count))
    making.start()
    making.join()
    options = ("--from", raw, "--data-dir", data, "--skip-verification")
    prepare = (ours.parent / "mlebench", "prepare", "-c", ID, *options)
    return {
        "prepare": measure_command(*prepare),
        "prepare, again": measure_command(*prepare),
        "verify, one process": measure_command(ours, "-c", VERIFY, data, ID, 1),
        "verify, two processes": measure_command(ours, "-c", VERIFY, data, ID, 2),
    }


def _make_raw(raw: Path, count: int) -> None:
    rng = random.Random(0)
    ids = sorted({f"{rng.getrandbits(48):012x}" for _ in range(count)})
    for id in ids:
        path = raw / "train" / id[0] / id[1] / id[2] / f"{id}.png"
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        path.touch()
    (raw / "train_labels.csv").write_text("image_id,InChI\n" + "".join(f"{id},InChI=1S/{id[:3]}\n" for id in ids))
    (raw / "extra_approved_InChIs.csv").write_text("InChI\nInChI=1S/H2O/h1H2\n")


if __name__ == "__main__":
    main()
