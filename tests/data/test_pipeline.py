"""Raw → prepared: sources, staging, locks, faults of disks and archives, verification."""

import errno
import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from click.testing import CliRunner
from support.folders import contents
from support.progress import RecordingProgress

import mlebench.engine.output.folder_plan
import mlebench.engine.raw_streams
import mlebench.engine.trees
from mlebench.core.errors import NotPreparedError, PrerequisiteError
from mlebench.core.leases import Lease
from mlebench.data import is_dataset_prepared, pipeline
from mlebench.data.manifest import recorded_files
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import LocalSource, PathSource, RawSource, TwinSource
from mlebench.engine.output.folder_plan import FolderPlan
from mlebench.engine.progress import SILENT_STAGE, Progress, Stage
from mlebench.engine.tables import Writable
from mlebench.grade import grade_csv
from mlebench.registry import Competition, Registry

ID = "spaceship-titanic"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A twin's raw data that looks real: nothing says that it is a twin."""
    competition = Registry(tmp_path / "twin").get_competition(ID)
    TwinSource().fetch(competition)
    return shutil.copytree(competition.raw_dir, tmp_path / "raw")


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    return Registry(tmp_path / "data").get_competition(ID)


def _archive(raw: Path, competition: Competition) -> Path:
    competition.paths.root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(competition.paths.archive, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(raw.rglob("*")):
            archive.write(path, path.relative_to(raw))
    return competition.paths.archive


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_archive_and_folder_give_the_same_bytes(raw: Path, tmp_path: Path) -> None:
    from_zip = Registry(tmp_path / "zip").get_competition(ID)
    from_folder = Registry(tmp_path / "folder").get_competition(ID)
    _archive(raw, from_zip)
    shutil.copytree(raw, from_folder.raw_dir)
    for competition in (from_zip, from_folder):
        assert prepare(competition, options=Options(verify=False))
    assert contents(from_zip.paths.prepared) == contents(from_folder.paths.prepared)
    assert not from_zip.raw_dir.exists()


def test_prepared_data_is_not_prepared_again(raw: Path, competition: Competition) -> None:
    shutil.copytree(raw, competition.raw_dir)
    assert prepare(competition, options=Options(verify=False))
    before = {path: path.stat().st_mtime_ns for path in competition.paths.prepared.rglob("*")}
    assert not prepare(competition, options=Options(verify=False))
    assert before == {path: path.stat().st_mtime_ns for path in competition.paths.prepared.rglob("*")}


def test_the_manifest_says_how_data_was_made(competition: Competition) -> None:
    prepare(competition, TwinSource(seed=3, size=0.5))
    manifest = json.loads(competition.paths.manifest.read_text())
    assert manifest["profile"] == "v1"
    assert manifest["source"] == {"kind": "twin", "seed": 3, "size": 0.5}
    assert {"mlebench", "pandas", "numpy", "python"} <= manifest["versions"].keys()
    assert (manifest["schema"], manifest["description"]) == (2, "ours")
    listed = dict(recorded_files(competition.paths.prepared))
    assert listed is not None
    assert (manifest["files"], manifest["bytes"]) == (len(listed), sum(facts["size"] for facts in listed.values()))
    for name, facts in listed.items():
        path = competition.paths.prepared / name
        assert facts["size"] == path.stat().st_size
        assert facts.get("md5") in (None, mlebench.engine.raw_streams.md5_of(path))
    assert {name for name, facts in listed.items() if "md5" in facts} >= {
        "private/test.csv",
        "public/train.csv",
    }


@pytest.fixture
def closed(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prepared folder that we may not read; tests may run as a user who may."""
    prepare(competition, TwinSource())
    look = os.stat

    def refuse(path: str | Path | int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if isinstance(path, str | Path) and Path(path).is_relative_to(competition.paths.prepared):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", refuse)
    return competition.paths.prepared


@pytest.mark.parametrize("verb", ["prepare -c ID --twin", "verify ID", "verify", "show ID", "list"])
def test_an_unreadable_folder_is_reported_in_one_line(
    verb: str, closed: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--data-dir", str(competition.paths.data_dir)]
    runner = CliRunner()
    name, *rest = verb.replace("ID", ID).split()
    module = importlib.import_module(f"mlebench.cli.{name}")
    done = runner.invoke(module.command, [*rest, *options])
    assert done.exception is None or isinstance(done.exception, SystemExit | PrerequisiteError), done.exception
    assert "Traceback" not in done.output
    if name != "list":
        assert f"{closed}" in f"{done.output}{done.exception}"
        assert "permission denied" in f"{done.output}{done.exception}"
    else:
        assert done.exit_code == 0


def test_data_that_the_reference_prepared_is_accepted_as_it_is(raw: Path, competition: Competition) -> None:
    shutil.copytree(raw, competition.raw_dir)
    prepare(competition, options=Options(verify=False))
    competition.paths.manifest.unlink()
    shutil.rmtree(competition.raw_dir)
    assert is_dataset_prepared(competition)
    assert not prepare(competition, LocalSource())
    assert grade_csv(competition.answers, competition).source == "unknown"


def test_another_twin_replaces_the_existing_one(competition: Competition) -> None:
    prepare(competition, TwinSource(seed=0))
    first = contents(competition.paths.prepared)
    assert not prepare(competition, TwinSource(seed=0))
    assert prepare(competition, TwinSource(seed=1))
    assert contents(competition.paths.prepared) != first
    assert prepare(competition, TwinSource(seed=0))
    assert contents(competition.paths.prepared) == first


def test_a_data_dir_holds_twins_or_real_data_never_both(raw: Path, tmp_path: Path) -> None:
    twins, real = Registry(tmp_path / "twins"), Registry(tmp_path / "real")
    prepare(twins.get_competition(ID), TwinSource())
    with pytest.raises(PrerequisiteError, match="holds twins"):
        prepare(twins.get_competition(ID), LocalSource())
    shutil.copytree(raw, real.get_competition(ID).raw_dir)
    with pytest.raises(PrerequisiteError, match="holds real data"):
        prepare(real.get_competition(ID), TwinSource())
    assert not (tmp_path / "real" / "data-dir.json").exists()


def test_a_failing_prepare_leaves_nothing_that_looks_prepared(
    raw: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(raw, competition.raw_dir)
    before = _files(competition.raw_dir)
    create = FolderPlan.create

    def fail_late(self: FolderPlan, name: str, stage: Stage = SILENT_STAGE) -> AbstractContextManager[Writable]:
        if name == "sample_submission.csv":
            raise RuntimeError("power cut")
        return create(self, name, stage)

    monkeypatch.setattr(FolderPlan, "create", fail_late)
    with pytest.raises(RuntimeError, match="power cut"):
        prepare(competition, options=Options(verify=False))
    assert not is_dataset_prepared(competition)
    assert not competition.paths.prepared.exists()
    assert _files(competition.raw_dir) == before
    monkeypatch.undo()
    (competition.paths.staging / "public/stray.txt").touch()
    assert prepare(competition, options=Options(verify=False))
    assert not competition.paths.staging.exists()
    assert not (competition.public_dir / "stray.txt").exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission"),
        (errno.ENAMETOOLONG, "too long"),
    ],
)
def test_a_full_or_read_only_disk_is_reported_in_one_line(
    raw: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    shutil.copytree(raw, competition.raw_dir)

    def fail(self: object, data: bytes) -> NoReturn:
        raise OSError(code, "no")

    monkeypatch.setattr(mlebench.engine.output.folder_plan._HashingStream, "write", fail)
    with pytest.raises(PrerequisiteError, match=words) as caught:
        prepare(competition, options=Options(verify=False))
    assert len(str(caught.value).splitlines()) == 1
    assert not competition.paths.prepared.exists()


@pytest.mark.parametrize("program", ["prepare", "twin"])
def test_a_disk_where_nothing_can_be_created_is_reported_in_one_line(
    competition: Competition, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def fail(self: Path, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "no", str(self))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(PrerequisiteError, match=r"cannot write to .*: the disk is full"):
        prepare(competition, TwinSource()) if program == "prepare" else TwinSource().fetch(competition)


@pytest.mark.parametrize(
    ("code", "words"), [(errno.EIO, "the disk failed"), (errno.EACCES, "permission denied"), (errno.ESTALE, "[Ss]tale")]
)
def test_unreadable_raw_data_is_reported_in_one_line(
    raw: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def fail(self: object, name: str) -> NoReturn:
        raise OSError(code, os.strerror(code), str(raw / name))

    monkeypatch.setattr(mlebench.engine.trees.FolderTree, "open", fail)
    with pytest.raises(PrerequisiteError, match=rf"cannot read {raw}/.*csv: .*{words}"):
        prepare(competition, PathSource(raw), Options(verify=False))


def test_prepared_data_works_on_a_read_only_disk(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(competition, TwinSource())

    def fail(self: Path, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, "no", str(self))

    monkeypatch.setattr(Path, "mkdir", fail)
    assert not prepare(competition, TwinSource())


def test_an_unreadable_folder_does_no_harm(
    raw: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    (competition.paths.data_dir / "lost+found").mkdir(parents=True)
    look = Path.iterdir

    def closed(self: Path) -> Iterable[Path]:
        if self.name == "lost+found":
            raise PermissionError(errno.EACCES, "no", str(self))
        return look(self)

    monkeypatch.setattr(Path, "iterdir", closed)
    assert prepare(competition, PathSource(raw), Options(verify=False))


def test_a_data_dir_that_cannot_be_created_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    competition = Registry(tmp_path / "file" / "data").get_competition(ID)
    with pytest.raises(PrerequisiteError, match="file"):
        prepare(competition)


def test_resuming_does_not_reread_the_whole_archive(
    raw: Path, competition: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _archive(raw, competition)
    (tmp_path / "sums.yaml").write_text(yaml.safe_dump({"zip": mlebench.engine.raw_streams.md5_of(archive)}))
    object.__setattr__(competition, "checksums", tmp_path / "sums.yaml")
    object.__setattr__(competition, "sample_score", None)
    first, second = RecordingProgress(), RecordingProgress()
    monkeypatch.setattr("mlebench.data.pipeline.write_manifest", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(competition, progress=first)
    size = archive.stat().st_size
    assert ("checking the archive", size, size) in first.events
    monkeypatch.undo()
    assert prepare(competition, progress=second)
    assert "checking the archive" not in second.stages
    found = sorted(path.name for path in competition.paths.root.iterdir())
    assert found == ["lock", "prepared", archive.name, f"{archive.name}.json"]


def test_a_data_dir_that_links_to_itself_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(PrerequisiteError, match=r"cannot write to .*loop: .*(links|there)"):
        prepare(Registry(tmp_path / "loop").get_competition(ID), TwinSource())


@pytest.mark.parametrize("damage", ["cut", "scrambled", "empty", "not a zip"])
def test_a_corrupt_archive_is_named_and_nothing_is_left(raw: Path, competition: Competition, damage: str) -> None:
    archive = _archive(raw, competition)
    content = archive.read_bytes()
    middle = len(content) // 3
    archive.write_bytes(
        {
            "cut": content[:-100],
            "scrambled": content[:middle] + bytes(500) + content[middle + 500 :],
            "empty": b"",
            "not a zip": b"<html>please log in</html>",
        }[damage]
    )
    with pytest.raises(PrerequisiteError, match=f"{ID}.zip") as caught:
        prepare(competition, options=Options(verify=False))
    assert len(str(caught.value).splitlines()) == 1
    assert not competition.paths.prepared.exists()


def test_raw_data_that_lacks_a_file_is_named(raw: Path, competition: Competition) -> None:
    shutil.copytree(raw, competition.raw_dir)
    (competition.raw_dir / "train.csv").unlink()
    with pytest.raises(PrerequisiteError, match=r"train\.csv"):
        prepare(competition, options=Options(verify=False))


def test_without_raw_data_the_error_says_where_it_belongs(competition: Competition) -> None:
    with pytest.raises(PrerequisiteError, match=f"{ID}.zip.*--twin"):
        prepare(competition)


def test_an_incomplete_folder_of_another_program_is_not_touched(raw: Path, competition: Competition) -> None:
    shutil.copytree(raw, competition.raw_dir)
    competition.public_dir.mkdir(parents=True)
    (competition.public_dir / "train.csv").write_text("half")
    with pytest.raises(PrerequisiteError, match="Move it away"):
        prepare(competition, options=Options(verify=False))
    assert (competition.public_dir / "train.csv").read_text() == "half"
    (competition.public_dir / "train.csv").rename(competition.paths.prepared / "notes.txt")
    with pytest.raises(PrerequisiteError, match="Move it away"):
        prepare(competition, options=Options(verify=False))
    (competition.paths.prepared / "notes.txt").unlink()
    assert prepare(
        competition, options=Options(verify=False)
    )  # empty folders, as the reference makes them, do not matter


def test_two_prepares_at_once_take_turns(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mlebench", "prepare", "-c", ID, "--twin", "--data-dir", str(tmp_path / "d")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        talk = [process.communicate(timeout=240)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0, 0], talk
    assert sum(f"{ID}: prepared" in text for text in talk) == 1
    assert sum(f"{ID}: already prepared" in text for text in talk) == 2


def test_an_overtaken_process_publishes_nothing(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    def stage_slowly(competition: Competition, source: RawSource, options: Options, progress: Progress) -> None:
        stage_all(competition, source, options, progress)
        assert Lease(competition.paths.lock, 2).create()  # another host, which thought this one dead

    stage_all = pipeline._fetch_and_stage
    monkeypatch.setattr(pipeline, "_fetch_and_stage", stage_slowly)
    with pytest.raises(PrerequisiteError, match="another has taken over"):
        prepare(competition, TwinSource())
    assert not competition.paths.prepared.exists()


def test_is_dataset_prepared_says_why_not(competition: Competition, caplog: pytest.LogCaptureFixture) -> None:
    def why(**how: bool) -> list[str]:
        caplog.clear()
        assert not is_dataset_prepared(competition, **how)
        return [record.message for record in caplog.records if record.levelno == logging.WARNING]

    assert why() == ["Public directory does not exist."]
    assert why(grading_only=True) == ["Private directory does not exist."]
    competition.public_dir.mkdir(parents=True)
    assert why() == ["Public directory is empty."]
    competition.private_dir.mkdir()
    assert why(grading_only=True) == ["Private directory is empty."]
    (competition.public_dir / "x").touch()
    (competition.private_dir / "x").touch()
    assert why() == ["Answers file does not exist."]
    competition.answers.touch()
    assert why() == ["Sample submission file does not exist."]
    assert is_dataset_prepared(competition, grading_only=True)


def test_unprepared_data_names_the_command(competition: Competition) -> None:
    with pytest.raises(NotPreparedError, match=f"mlebench prepare -c {ID}"):
        grade_csv(Path("x.csv"), competition)


class TestVerification:
    """The published checksums, against data that is not real."""

    @pytest.fixture
    def own(self, raw: Path, competition: Competition, tmp_path: Path) -> Competition:
        """The competition with a checksums file that may be written."""
        shutil.copytree(raw, competition.raw_dir)
        object.__setattr__(competition, "checksums", tmp_path / "checksums.yaml")
        object.__setattr__(competition, "sample_score", None)
        return competition

    def test_files_that_differ_are_listed(self, raw: Path, competition: Competition) -> None:
        shutil.copytree(raw, competition.raw_dir)
        with pytest.raises(PrerequisiteError) as caught:
            prepare(competition)
        for name in ("public/train.csv", "public/test.csv", "public/sample_submission.csv", "private/test.csv"):
            assert name in str(caught.value)
        assert not competition.paths.prepared.exists()

    def test_an_archive_that_differs_is_refused_before_it_is_read(self, raw: Path, competition: Competition) -> None:
        _archive(raw, competition)
        with pytest.raises(PrerequisiteError, match="not the published archive"):
            prepare(competition)

    def test_the_archive_is_the_same_under_every_profile(self, raw: Path, competition: Competition) -> None:
        v2 = Registry(competition.paths.data_dir, "v2").get_competition(ID)
        _archive(raw, v2)
        with pytest.raises(PrerequisiteError, match="not the published archive"):
            prepare(v2)

    def test_checksums_can_be_rewritten_and_then_match(self, own: Competition) -> None:
        prepare(own, options=Options(overwrite_checksums=True))
        sums = yaml.safe_load(own.checksums.read_text())
        assert sums["public"].keys() == {"train.csv", "test.csv", "sample_submission.csv"}
        assert sums["private"].keys() == {"test.csv"}
        shutil.rmtree(own.paths.prepared)
        assert prepare(own)

    def test_checksums_are_not_rewritten_from_a_twin(self, competition: Competition) -> None:
        with pytest.raises(PrerequisiteError, match="checksums are those of real data"):
            prepare(competition, TwinSource(), Options(overwrite_checksums=True))

    def test_twins_are_not_compared_with_published_figures(self, competition: Competition) -> None:
        assert prepare(competition, TwinSource(), Options(verify=True))
