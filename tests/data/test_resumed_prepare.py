"""A prepare from Kaggle that is killed at every stage: all attempts together do the work of one.

Each attempt is a separate process that kills itself with SIGKILL at a given point, and records each piece of work.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.fake_kaggle import TOKEN, FakeKaggle
from support.folders import contents

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.state import data_identity, preparation_fault, read_manifest_head
from mlebench.engine.raw_streams import md5_of
from mlebench.records.data import DataSource
from mlebench.registry import Registry

# Tables, and an archive inside the archive with many files.
ID, SIZE = "nomad2018-predict-transparent-conductors", 2.0
CUT = 100_000  # bytes of the download

PROGRAM = """
import json, os, signal, sys
data_dir, url, id, log, stage, options = sys.argv[1:]
options = json.loads(options)

from kagglesdk import kaggle_env
kaggle_env._env_to_endpoint.update(dict.fromkeys(kaggle_env._env_to_endpoint, url))

import mlebench.data.kaggle as kaggle
import mlebench.data.pipeline as pipeline
import mlebench.engine.archives.zip_tree as archives
import mlebench.engine.raw_streams as reading
from mlebench.engine.progress import Progress
import mlebench.kit.raw as files
from mlebench.kit.raw import Raw
from mlebench.engine.output.folder_plan import FolderPlan
from mlebench.registry import Registry

kaggle.CHUNK = 1 << 14
passed = {}

def work(kind, name):
    with open(log, "a") as stream:
        stream.write(json.dumps([kind, str(name)]) + "\\n")

def reach(name, count=1):
    passed[name] = passed.get(name, 0) + 1
    if stage == name and passed[name] == count:
        os.kill(os.getpid(), signal.SIGKILL)

def around(owner, name, before=None, after=None):
    function = getattr(owner, name)
    def wrapped(*given, **more):
        if before:
            before(*given)
        result = function(*given, **more)
        if after:
            after(*given)
        return result
    setattr(owner, name, wrapped)

class Watch(Progress):
    def tell(self, stage, done=0, total=None):
        if stage == "downloading" and done > %(cut)d:
            reach("downloading")

around(kaggle, "record_download", lambda *_: reach("downloaded"), lambda *_: reach("recorded"))
around(kaggle, "download", after=lambda *_: reach("named"))
around(reading, "md5_of", lambda path, *_: work("md5", path.name), lambda *_: reach("summed"))
around(pipeline, "check_archive", after=lambda *_: reach("checked"))
around(Raw, "_on_disk", after=lambda self, name: reach(f"spooled {name}"))
around(archives, "create_whole", lambda path, *_: (reach("placing", 50), reach("unpacking", 2), work("placed", path)))
around(pipeline, "_publish", lambda *_: reach("publishing"))

create = files.create
def counted_create(path, **more):
    work("spooled", path)
    return create(path, **more)
files.create = counted_create

create_file = FolderPlan.create
from contextlib import contextmanager
@contextmanager
def counted(self, name, *more):
    work("written", f"{self.folder.name}/{name}")
    with create_file(self, name, *more) as stream:
        yield stream
        reach("writing", 2)
    reach("written", 3)
FolderPlan.create = counted

from dataclasses import replace
from pathlib import Path
competition = Registry(data_dir).get_competition(id)
competition = replace(competition, sample_score=None, checksums=Path(options.pop("sums")))
pipeline.prepare(competition, kaggle.KaggleSource(), pipeline.Options(**options), Watch())
reach("prepared")
"""

# In the order of a prepare; each attempt continues the one before.
STAGES = (
    *("downloading", "downloaded", "recorded", "named", "summed", "checked", "spooled train.zip"),
    *("writing", "written", "placing", "publishing"),
)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    twin = TwinSource(size=SIZE).fetch(Registry(folder / "twin").get_competition(ID))
    return Path(shutil.make_archive(str(folder / "archive"), "zip", twin))


class _Attempts:
    def __init__(self, folder: Path, raw: Path, kaggle: FakeKaggle, **options: bool):
        folder.mkdir(parents=True, exist_ok=True)
        sums = folder / "sums.yaml"
        sums.write_text(f"zip: {md5_of(raw)}\n")
        self._kaggle, self._folder, self._log = kaggle, folder, folder / "log"
        self._options = json.dumps(options | {"sums": str(sums)})
        self.competition = Registry(folder / "data").get_competition(ID)

    def make(self, stage: str = "-") -> int:
        """The exit code of an attempt that ends at a stage, if it gets there."""
        program = PROGRAM % {"cut": CUT}
        data_dir, log = str(self.competition.paths.data_dir), str(self._log)
        arguments = [data_dir, self._kaggle.url, ID, log, stage, self._options]
        return subprocess.run([sys.executable, "-c", program, *arguments], check=False).returncode

    def work(self) -> Counter[tuple[str, str]]:
        return Counter(tuple(json.loads(line)) for line in self._log.read_text().splitlines())

    def sent(self) -> int:
        return sum(call.sent for call in self._kaggle.called("storage"))


def _kaggle(raw: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKaggle:
    monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    monkeypatch.setenv("NO_PROXY", "*")
    return FakeKaggle(raw.read_bytes(), competitions={ID})


def test_killed_at_every_stage_nothing_is_done_twice(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _kaggle(raw, monkeypatch).serving() as kaggle:
        attempts = _Attempts(tmp_path / "a", raw, kaggle)
        where, kept = attempts.competition.paths, 0
        for stage in STAGES:
            assert attempts.make(stage) == -9, f"it never came to {stage}"
            assert preparation_fault(attempts.competition) is not None
            if stage == "downloading":
                kept = where.archive_part.stat().st_size
                assert CUT < kept < len(kaggle.archive)
        assert attempts.make() == 0
        # Only what the killed client had received but not written is sent twice.
        _, second = kaggle.called("storage")
        assert second.sent == len(kaggle.archive) - kept
        assert len(kaggle.called("DownloadDataFiles")) == 2
    whole = Registry(tmp_path / "whole").get_competition(ID)
    prepare(whole, PathSource(raw), Options(verify=False))
    assert contents(where.prepared) == contents(whole.paths.prepared)
    # Every file once, and once more what a kill interrupted: the md5 that was not recorded yet, and the tables that one
    # over a file writes, one of which was finished.
    tables = [name for name in contents(where.prepared) if name.endswith(".csv")]
    images = [name for name in contents(where.prepared) if name.endswith(".xyz")]
    done = Counter(kind for kind, _ in attempts.work().elements())
    assert done == {"md5": 2, "spooled": 2, "written": 2 * len(tables) - 1, "placed": len(images)}
    head = read_manifest_head(attempts.competition)
    assert head
    assert (head.source.kind, head.source.size) == ("kaggle", len(kaggle.archive))
    assert head.source.md5 == md5_of(raw)
    assert head.identity == data_identity(whole)
    assert sorted(path.name for path in where.root.iterdir()) == ["lock", f"{ID}.zip", f"{ID}.zip.json", "prepared"]


def test_kept_raw_files_are_not_unpacked_again(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _kaggle(raw, monkeypatch).serving() as kaggle:
        attempts = _Attempts(tmp_path, raw, kaggle, keep_raw=True)
        for stage in ("unpacking", "placing"):
            assert attempts.make(stage) == -9
        assert attempts.make() == 0
        assert attempts.sent() == len(kaggle.archive)
    assert max(attempts.work().values()) == 1
    head = read_manifest_head(attempts.competition)
    assert head
    assert head.source.kind == "kaggle"
    assert (attempts.competition.raw_dir / "train.zip").stat().st_mode & 0o777 == 0o644


def test_the_archive_still_counts_as_kaggles_when_prepared_again(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _kaggle(raw, monkeypatch).serving() as kaggle:
        attempts = _Attempts(tmp_path, raw, kaggle)
        assert attempts.make() == 0
    competition = attempts.competition
    identity = data_identity(competition)
    shutil.rmtree(competition.paths.prepared)
    prepare(competition, options=Options(verify=False))
    head = read_manifest_head(competition)
    assert head
    assert (head.source.kind, head.identity) == ("kaggle", identity)
    # From another data directory, where it was copied with its time; not if someone put their own archive there.
    shutil.copytree(competition.paths.data_dir, tmp_path / "copy")
    other = Registry(tmp_path / "other").get_competition(ID)
    prepare(other, PathSource(tmp_path / "copy"), Options(verify=False))
    head = read_manifest_head(other)
    assert head
    assert (head.source.kind, head.identity) == ("kaggle", identity)
    shutil.rmtree(competition.paths.prepared)
    competition.paths.archive.unlink()
    shutil.copyfile(raw, competition.paths.archive)
    prepare(competition, options=Options(verify=False))
    head = read_manifest_head(competition)
    assert head
    assert (head.source, head.identity) == (DataSource(kind="local"), identity)
