"""`kill -9` at any moment, and the same command again: it goes on and ends with the same bytes."""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from folders import contents

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.data.state import preparation_fault
from mlebench.registry import Registry

ID, SIZE = "nomad2018-predict-transparent-conductors", 20.0
MOMENTS = int(os.environ.get("MLEBENCH_KILLS", "8"))
SLOWLY = """
import sys, time
import mlebench.kit.archives, mlebench.kit.outputs
from mlebench.cli import main
extract, create = mlebench.kit.archives.ZipTree.extract, mlebench.kit.outputs.Output.create
def slow_extract(self, *arguments):
    time.sleep(0.0005)
    return extract(self, *arguments)
def slow_create(self, *arguments):
    time.sleep(0.05)
    return create(self, *arguments)
mlebench.kit.archives.ZipTree.extract, mlebench.kit.outputs.Output.create = slow_extract, slow_create
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    competition = Registry(tmp_path_factory.mktemp("whole")).get_competition(ID)
    prepare(competition, TwinSource(size=SIZE))
    return contents(competition.paths.prepared)


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_killed_and_started_again(moment: int, whole: dict[str, bytes], tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    command = [
        sys.executable,
        "-c",
        SLOWLY,
        "prepare",
        "-c",
        ID,
        "--twin",
        "--size",
        str(SIZE),
        "--data-dir",
        str(tmp_path),
    ]
    rng = random.Random(moment)
    for _ in range(3):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if preparation_fault(competition) is None:  # it was quicker than we were
            assert contents(competition.paths.prepared) == whole
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert contents(competition.paths.prepared) == whole
    assert not competition.paths.staging.exists()
    assert sorted(path.name for path in competition.paths.root.iterdir()) == ["lock", "prepared", "raw", "twin.json"]


ENDLESS = """
import fcntl, os, sys, time
from dataclasses import dataclass
from pathlib import Path
from mlebench.data.batch import prepare_many
from mlebench.data.pipeline import Options
from mlebench.data.sources import TwinSource
from mlebench.registry import Registry

@dataclass(frozen=True)
class Endless(TwinSource):
    def fetch(self, competition):
        with Path(sys.argv[1], f"worker-{os.getpid()}").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.rename(file.name, f"{file.name}.begun")
            time.sleep(3600)

if __name__ == "__main__":
    ids = ["spaceship-titanic", "random-acts-of-pizza", "leaf-classification"]
    list(prepare_many(Registry(Path(sys.argv[1], "data")), ids, Endless(), Options(), jobs=2))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_workers_end_with_their_parent(name: str, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    parent = subprocess.Popen([sys.executable, program, tmp_path], stderr=subprocess.DEVNULL)
    while len(begun := list(tmp_path.glob("*.begun"))) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    parent.send_signal(signal.Signals[name])
    parent.wait()
    for path in begun:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as soon as the worker that holds it has ended
    assert len(list(tmp_path.glob("worker-*"))) == 2, "nothing else is begun"


def test_data_that_is_being_replaced_does_not_look_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    prepare(competition, TwinSource(seed=1))

    remove = shutil.rmtree

    def remove_a_little(folder: Path, **how: bool) -> None:
        if folder != competition.paths.replaced:
            remove(folder, **how)
            return
        next(path for path in folder.rglob("*") if path.is_file()).unlink()
        raise RuntimeError("power cut")

    monkeypatch.setattr("mlebench.data.pipeline.shutil.rmtree", remove_a_little)
    with pytest.raises(RuntimeError, match="power cut"):
        prepare(competition, TwinSource(seed=2))
    monkeypatch.undo()
    for seed in (2, 1):
        prepare(competition, TwinSource(seed=seed))
        clean = Registry(tmp_path / f"clean-{seed}").get_competition(ID)
        prepare(clean, TwinSource(seed=seed))
        assert contents(competition.paths.prepared) == contents(clean.paths.prepared)
        assert not competition.paths.replaced.exists()


def test_what_was_placed_before_is_not_placed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlebench.kit.archives import ZipTree

    competition = Registry(tmp_path).get_competition(ID)
    read, count = ZipTree._read_whole, 0

    def fail_after(limit: int):
        def one(self, *arguments):
            nonlocal count
            count += 1
            if count > limit:
                raise RuntimeError("power cut")
            return read(self, *arguments)

        return one

    monkeypatch.setattr("mlebench.kit.outputs.threads", lambda: 1)
    monkeypatch.setattr(ZipTree, "_read_whole", fail_after(500))
    with pytest.raises(RuntimeError, match="power cut"):
        prepare(competition, TwinSource(size=SIZE))
    assert preparation_fault(competition) is not None
    monkeypatch.setattr(ZipTree, "_read_whole", fail_after(10**9))
    count = 0
    prepare(competition, TwinSource(size=SIZE))
    assert count == 2400 - 500


def test_another_twin_does_not_go_on_with_the_leftovers_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    competition = Registry(tmp_path / "a").get_competition(ID)
    monkeypatch.setattr("mlebench.data.pipeline.write_manifest", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(competition, TwinSource(seed=1))
    monkeypatch.undo()
    prepare(competition, TwinSource(seed=2))
    clean = Registry(tmp_path / "b").get_competition(ID)
    prepare(clean, TwinSource(seed=2))
    assert contents(competition.paths.prepared) == contents(clean.paths.prepared)
