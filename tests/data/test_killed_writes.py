"""A prepare is killed at every write to the disk, before it and half-way through: the same command makes up for it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.folders import contents

from mlebench.core.files import write_whole
from mlebench.core.leases import held
from mlebench.core.paths import MANIFEST, MANIFEST_FILES, data_dir_record
from mlebench.data import verification
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.state import data_identity, preparation_fault
from mlebench.data.verification import verify
from mlebench.registry import Competition, Registry

SERVER = Path(__file__).parents[1] / "support" / "fork_server.py"
ID, PACKED = "spaceship-titanic", "statoil-iceberg-classifier-challenge"  # plain tables; 7z archives inside the archive
SIZE = 0.01
FIRST_BYTES = 10
SPACED = 4  # kills of each kind that `make test` spreads over a command


class Kill(NamedTuple):
    write: str
    size: int | None  # bytes that the file gets first; None: the kill comes before the write


@dataclass(frozen=True)
class Command:
    """A way to prepare, with `RAW` and `DATA` in place of folders."""

    id: str
    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()  # a command that is carried out first, and not killed

    def words(self, arguments: tuple[str, ...], raw: Path, data: Path) -> list[str]:
        folders = {"RAW": str(raw), "DATA": str(data)}
        return [folders.get(word, word) for word in ("prepare", "-c", self.id, "--data-dir", "DATA", *arguments)]


TWIN = ("--twin", "--size", str(SIZE))
COMMANDS = {
    "a twin": Command(ID, TWIN),
    "another twin in its place": Command(ID, (*TWIN, "--seed", "1"), before=TWIN),
    "an archive": Command(PACKED, ("--from", "RAW", "--skip-verification")),
    "an archive whose raw files stay": Command(PACKED, ("--from", "RAW", "--skip-verification", "--keep-raw")),
}


class Server:
    """Runs commands in children of a process that has imported everything."""

    def __init__(self, folder: Path):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a fork copies no threads
        self._process = subprocess.Popen(
            [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._folder = folder
        self._modules: list[str] = []

    def run(self, arguments: list[str], root: Path) -> list[str]:
        """Carry out a command; return the names of its writes."""
        record = self._folder / "record.json"
        code = self._ask(arguments, root, record=str(record))
        assert code == 0, (self._folder / "log").read_text()
        done = json.loads(record.read_bytes())
        self._modules = done["modules"]
        return done["writes"]

    def kill(self, arguments: list[str], root: Path, kill: Kill) -> bool:
        """False if the command has ended before: it made no such write this time, or a shorter one."""
        code = self._ask(arguments, root, kill_at=kill.write, size=kill.size)
        assert code in (0, -signal.SIGKILL, -signal.SIGXFSZ), kill
        return code != 0

    def _ask(self, arguments: list[str], root: Path, **more: Any) -> int:
        request = {"arguments": arguments, "root": f"{root}/", "log": str(self._folder / "log"), **more}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request | {"modules": self._modules}) + "\n")
        self._process.stdin.flush()
        self._modules = []  # it has them now
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an archive that holds archives."""
    folder, twins = tmp_path_factory.mktemp("raw"), Registry(tmp_path_factory.mktemp("twins"))
    files = TwinSource(size=SIZE).fetch(twins.get_competition(PACKED))
    shutil.make_archive(str(folder / PACKED), "zip", files)
    return folder


def _state(competition: Competition) -> tuple[Any, ...]:
    """All there is in a competition's folder, except who held its lock and when."""
    root = competition.paths.root
    names = {
        path.relative_to(root).as_posix() for path in root.rglob("*") if competition.paths.lock not in path.parents
    }
    files = {name: data for name, data in contents(root).items() if name in names}
    return names, files, data_identity(competition)


def _kills(writes: list[str], all_of_them: bool) -> list[Kill]:
    """Before each write, and half-way through each file; or some of these, among them those that leave remains in
    a folder that is to be published."""
    before = [Kill(write, None) for write in writes]
    during = [Kill(write, FIRST_BYTES) for write in writes if write.startswith("open ")]
    if all_of_them:
        return before + during
    leaving = [kill for kill in before if kill.write.startswith("os.rename ")] + during
    staged = [kill for kill in leaving if ".staging/" in kill.write and ".mlebench-part-N" in kill.write]
    spaced = [kill for kills in (before, during) for kill in kills[:: -(-len(kills) // SPACED)]]
    return [*dict.fromkeys(staged + spaced)]


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_a_write_and_started_again(
    name: str, all_of_them: bool, server: Server, raw: Path, tmp_path: Path
) -> None:
    command, data = COMMANDS[name], tmp_path / "data"
    competition = Registry(data).get_competition(command.id)
    words = command.words(command.arguments, raw, data)

    def begin() -> None:
        shutil.rmtree(data, ignore_errors=True)
        if command.before:
            server.run(command.words(command.before, raw, data), data)

    begin()
    writes = server.run(words, data)
    whole = _state(competition)
    assert sum("manifest" in write for write in writes) >= 4
    kills = _kills(writes, all_of_them)
    killed = 0
    for kill in kills:
        begin()
        killed += server.kill(words, data, kill)
        if not command.before and preparation_fault(competition) is None:
            assert _state(competition)[1:] == whole[1:], kill
        server.run(words, data)
        assert _state(competition) == whole, kill
    assert killed > len(kills) * 0.9, "most writes happen every time"


def test_records_that_were_never_completed_are_removed(tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    where = competition.paths
    where.root.mkdir()
    records = (where.twin, where.archive_record, where.archive_elsewhere_record, where.raw_staging_record)
    for record in records:
        record.with_name(f"{record.name}.mlebench-part-9").touch()
    write_whole(data_dir_record(tmp_path), "{}")  # it holds twins already
    prepare(competition, TwinSource(size=SIZE))
    assert sorted(path.name for path in where.root.iterdir()) == ["lock", "prepared", "raw", "twin.json"]


def test_files_that_are_half_removed_are_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prepare is cut off, and so is another one that is clearing its place: the first starts from scratch."""
    competition = Registry(tmp_path / "data").get_competition(PACKED)
    where = competition.paths
    raw = TwinSource(size=SIZE).fetch(Registry(tmp_path / "twin").get_competition(PACKED))
    first, second = (Path(shutil.make_archive(str(tmp_path / name), "zip", raw)) for name in ("first", "second"))
    monkeypatch.setattr("mlebench.data.pipeline.write_manifest", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(competition, PathSource(first), Options(verify=False))
    monkeypatch.undo()

    def remove_a_little(folder: Path) -> None:
        if folder == where.staging:
            next(path for path in where.unpacked.glob("*/**/*") if path.is_file()).unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr("mlebench.data.pipeline.remove", remove_a_little)
    with pytest.raises(KeyboardInterrupt):
        prepare(competition, PathSource(second), Options(verify=False))
    monkeypatch.undo()
    assert where.staging.is_dir()
    whole = Registry(tmp_path / "whole").get_competition(PACKED)
    for target in (competition, whole):
        assert prepare(target, PathSource(first), Options(verify=False))
    assert contents(where.prepared) == contents(whole.paths.prepared)


def test_two_processes_may_verify_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of an unsealed agent does so at its end; none may fail because another was quicker."""
    competition = Registry(tmp_path).get_competition(ID)
    prepare(competition, TwinSource(size=SIZE))
    manifest = competition.paths.manifest
    older = json.dumps(json.loads(manifest.read_bytes()) | {"identity": None})  # as earlier versions wrote it
    manifest.write_text(older)
    record = verification._record

    def record_second(*arguments: Any) -> None:
        monkeypatch.undo()
        assert verify(competition) == []
        record(*arguments)

    monkeypatch.setattr(verification, "_record", record_second)
    assert verify(competition) == []
    assert json.loads(manifest.read_bytes())["identity"]


def test_verifying_removes_remains_and_leaves_data_alone_that_is_being_prepared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    where = competition.paths
    prepare(competition, TwinSource(size=SIZE))
    names = sorted(path.name for path in where.prepared.iterdir())
    for name in (MANIFEST, MANIFEST_FILES):
        (where.prepared / f"{name}.mlebench-part-9").touch()
    where.manifest.unlink()
    with held(where.lock):
        assert [difference.fault for difference in verify(competition, adopt=True)] == [
            "cannot be written (another process is working on this data): nothing was recorded"
        ]
    assert not where.manifest.exists()
    assert verify(competition, adopt=True) == []
    assert sorted(path.name for path in where.prepared.iterdir()) == names
    assert "Traceback" not in caplog.text
