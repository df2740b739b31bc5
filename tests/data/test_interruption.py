"""`kill -9` at any moment, and the same command again: it continues and ends with the same bytes."""

import errno
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from support.folders import contents

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.state import preparation_fault
from mlebench.registry import Registry

ID, IMAGES, TARS = (
    "nomad2018-predict-transparent-conductors",
    "histopathologic-cancer-detection",
    "inaturalist-2019-fgvc6",
)
SIZES = {ID: 20.0, IMAGES: 10.0, TARS: 2.0}
DEADLINE = 120  # seconds until a test stops waiting for another process
MOMENTS = int(os.environ.get("MLEBENCH_KILLS", "8"))
# Options, what is prepared with them, and what is left at the end besides the lock and prepared/.
WAYS = [
    (["-c", ID, "--twin", "--size", str(SIZES[ID])], [ID], ["raw", "twin.json"]),
    (["-c", IMAGES, "--from", "RAW"], [IMAGES], []),
    (["-c", TARS, "--from", "RAW", "--keep-raw"], [TARS], ["raw"]),
    (["-c", ID, "-c", IMAGES, "-c", TARS, "--from", "RAW", "--jobs", "2"], [ID, IMAGES, TARS], []),
]
SLOWLY = """
import sys, time
from mlebench.engine.archives.zip_tree import ZipTree
from mlebench.engine.output.folder_plan import FolderPlan
from mlebench.cli import main
extract, create = ZipTree.extract, FolderPlan.create
def slow_extract(self, *arguments):
    time.sleep(0.0005)
    return extract(self, *arguments)
def slow_create(self, *arguments):
    time.sleep(0.05)
    return create(self, *arguments)
ZipTree.extract, FolderPlan.create = slow_extract, slow_create
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the archives of all."""
    folder, twins = tmp_path_factory.mktemp("raw"), Registry(tmp_path_factory.mktemp("twins"))
    for id, size in SIZES.items():
        shutil.make_archive(str(folder / id), "zip", TwinSource(size=size).fetch(twins.get_competition(id)))
    return folder


@pytest.fixture(scope="module")
def whole(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    registry = Registry(tmp_path_factory.mktemp("whole"))
    for id in SIZES:
        prepare(registry.get_competition(id), PathSource(raw), Options(verify=False))
    return {id: contents(registry.get_competition(id).paths.prepared) for id in SIZES}


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_killed_and_started_again(moment: int, raw: Path, whole: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    options, ids, left = WAYS[moment % len(WAYS)]
    options = [str(raw) if option == "RAW" else option for option in options]
    command = [sys.executable, "-c", SLOWLY, "prepare", *options, "--skip-verification", "--data-dir", str(tmp_path)]
    competitions = [Registry(tmp_path).get_competition(id) for id in ids]
    rng = random.Random(moment)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE)
        for competition in competitions:
            if preparation_fault(competition) is None:  # it was faster than we were
                assert contents(competition.paths.prepared) == whole[competition.id]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for competition in competitions:
        assert contents(competition.paths.prepared) == whole[competition.id]
        found = sorted(path.name for path in competition.paths.root.iterdir())
        assert found == sorted(["lock", "prepared", *left])


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
    folder: str = ""

    def fetch(self, competition, progress):
        with Path(self.folder, f"worker-{os.getpid()}").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.rename(file.name, f"{file.name}.begun")
            time.sleep(3600)

if __name__ == "__main__":
    ids = ["spaceship-titanic", "random-acts-of-pizza", "leaf-classification"]
    import endless  # not `__main__`, whose names cannot be sent to another process

    list(prepare_many(Registry(Path(sys.argv[1], "data")), ids, endless.Endless(folder=sys.argv[1]), Options(), jobs=2))
"""


def _wait_until(is_true: Callable[[], bool], fault: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not is_true():
        if time.monotonic() > deadline:
            pytest.fail(f"{fault}, after {DEADLINE} seconds")
        time.sleep(0.05)


def _is_unlocked(file: IO[str]) -> bool:
    """Whether the worker that holds the lock has ended."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_workers_end_with_their_parent(name: str, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    parent = subprocess.Popen([sys.executable, program, tmp_path], stderr=subprocess.DEVNULL)
    _wait_until(lambda: len(list(tmp_path.glob("*.begun"))) == 2 or parent.poll() is not None, "no two workers begin")
    assert parent.poll() is None
    parent.send_signal(signal.Signals[name])
    _wait_until(lambda: parent.poll() is not None, "the parent does not end")
    for path in tmp_path.glob("*.begun"):
        with path.open() as file:
            _wait_until(lambda file=file: _is_unlocked(file), "a worker outlives its parent")
    assert len(list(tmp_path.glob("worker-*"))) == 2, "nothing else is begun"


def test_data_that_is_being_replaced_does_not_look_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    prepare(competition, TwinSource(seed=1))

    remove = shutil.rmtree

    def remove_a_little(folder: Path, **how: Any) -> None:
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


def test_replaced_data_that_cannot_be_removed_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    prepare(competition, TwinSource(seed=1))
    remove = shutil.rmtree

    def refuse(folder: Path, **how: Any) -> None:
        if folder == competition.paths.replaced:
            raise PermissionError(errno.EACCES, "Permission denied", "description.md")
        remove(folder, **how)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    assert prepare(competition, TwinSource(seed=2))
    assert not prepare(competition, TwinSource(seed=2))
    assert f"{competition.paths.replaced} cannot be removed" in caplog.text
    monkeypatch.undo()
    assert not prepare(competition, TwinSource(seed=2))
    assert not competition.paths.replaced.exists()


def test_prepared_data_may_be_a_link_to_another_place(tmp_path: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(ID)
    prepare(competition, TwinSource(seed=1))
    competition.paths.prepared.rename(tmp_path / "elsewhere")
    competition.paths.prepared.symlink_to(tmp_path / "elsewhere")
    assert not prepare(competition, TwinSource(seed=1))
    assert prepare(competition, TwinSource(seed=2))
    assert (tmp_path / "elsewhere" / "manifest.json").exists()
    assert not competition.paths.replaced.is_symlink()


def test_placed_files_are_not_placed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlebench.engine.archives.zip_tree import ZipTree

    competition = Registry(tmp_path).get_competition(ID)
    read, count = ZipTree._read_whole, 0

    def fail_after(limit: int) -> Callable[..., bytes]:
        def one(self: ZipTree, *arguments: Any) -> bytes:
            nonlocal count
            count += 1
            if count > limit:
                raise RuntimeError("power cut")
            return read(self, *arguments)

        return one

    monkeypatch.setattr("mlebench.engine.threads.threads", lambda: 1)
    monkeypatch.setattr(ZipTree, "_read_whole", fail_after(500))
    with pytest.raises(RuntimeError, match="power cut"):
        prepare(competition, TwinSource(size=SIZES[ID]))
    assert preparation_fault(competition) is not None
    monkeypatch.setattr(ZipTree, "_read_whole", fail_after(10**9))
    count = 0
    prepare(competition, TwinSource(size=SIZES[ID]))
    assert count == 2400 - 500


def test_another_twin_does_not_continue_the_leftovers_of_the_first(
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
