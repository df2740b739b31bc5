"""Raw data from anywhere: archives, folders, folders of many, and raw folders that the reference has touched."""

import errno
import json
import os
import shutil
import signal
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import py7zr
import pytest
from support.folders import contents
from support.progress import RecordingProgress

from mlebench.core.errors import PrerequisiteError
from mlebench.data.batch import prepare_many
from mlebench.data.pipeline import Options, prepare
from mlebench.data.preflight import check_all
from mlebench.data.sources import LocalSource, PathSource, TwinSource
from mlebench.data.verification import verify
from mlebench.engine.progress import SILENT, Progress
from mlebench.engine.threads import threads
from mlebench.registry import Competition, Registry

TITANIC, NOMAD = "spaceship-titanic", "nomad2018-predict-transparent-conductors"
UNCHECKED = Options(verify=False)


def _raw(id: str, tmp_path: Path) -> Path:
    """Raw data that looks real."""
    competition = Registry(tmp_path / "twins").get_competition(id)
    TwinSource().fetch(competition)
    return shutil.copytree(competition.raw_dir, tmp_path / f"raw-of-{id}", dirs_exist_ok=True)


def _zip(raw: Path, archive: Path) -> Path:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(path for path in raw.rglob("*") if path.is_file()):
            opened.write(path, path.relative_to(raw))
    return archive


def _with_lock(root: Path) -> Path:
    (root / "lock").touch()
    return root


@pytest.mark.parametrize("id", [TITANIC, NOMAD])
def test_every_way_to_provide_raw_data_gives_the_same_result(id: str, tmp_path: Path) -> None:
    raw = _raw(id, tmp_path)
    many, folders, data_dir = tmp_path / "zips", tmp_path / "folders", tmp_path / "data-dir"
    ways = [
        _zip(raw, tmp_path / "some-name.zip"),
        raw,
        _zip(raw, many / f"{id}.zip").parent,
        shutil.copytree(raw, folders / id).parent,
        shutil.copytree(raw, data_dir / id / "raw").parent.parent,
        _with_lock(data_dir / id),
    ]
    found = []
    for number, way in enumerate(ways):
        competition = Registry(tmp_path / f"data-{number}").get_competition(id)
        prepare(competition, PathSource(way), UNCHECKED)
        found.append(contents(competition.paths.prepared))
        assert not competition.raw_dir.exists()
        assert not competition.paths.archive.exists()
    assert all(one == found[0] for one in found)


def test_a_folder_of_many_without_this_one_is_refused(tmp_path: Path) -> None:
    _zip(_raw(TITANIC, tmp_path), tmp_path / "zips" / f"{TITANIC}.zip")
    competition = Registry(tmp_path / "data").get_competition(NOMAD)
    with pytest.raises(PrerequisiteError, match=f"{NOMAD}.zip"):
        prepare(competition, PathSource(tmp_path / "zips"), UNCHECKED)


def test_prepared_data_does_not_pass_for_raw_data(tmp_path: Path) -> None:
    prepare(Registry(tmp_path / "theirs").get_competition(TITANIC), TwinSource())
    shutil.rmtree(tmp_path / "theirs" / TITANIC / "raw")
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    for place in (tmp_path / "theirs", tmp_path / "theirs" / TITANIC):
        with pytest.raises(PrerequisiteError, match="there is no raw data of"):
            PathSource(place).fetch(competition)


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_space_needed_for_raw_data_on_disk(tmp_path: Path, kind: str) -> None:
    raw = _raw("histopathologic-cancer-detection", tmp_path)
    place = raw if kind == "folder" else _zip(raw, tmp_path / "raw.zip")
    competition = Registry(tmp_path / "data").get_competition("histopathologic-cancer-detection")
    (check,) = check_all([competition], PathSource(place))
    sizes = {path.suffix: 0 for path in raw.rglob("*")}
    for path in raw.rglob("*.*"):
        sizes[path.suffix] += path.stat().st_size
    at_end = sizes[".csv"] + (0 if kind == "folder" else sizes[".tif"])  # images are linked from a folder
    assert check == (competition.id, check.data, "-", None, at_end + sizes[".csv"], at_end, "")


@pytest.mark.parametrize(
    "id", ["denoising-dirty-documents", "leaf-classification", NOMAD, "spooky-author-identification"]
)
def test_archives_in_a_raw_folder_take_space_too(id: str, tmp_path: Path) -> None:
    raw = _raw(id, tmp_path)
    assert not any(path.suffix == ".csv" for path in raw.rglob("*"))
    prepared = Registry(tmp_path / "twins").get_competition(id)
    prepare(prepared, TwinSource())
    (check,) = check_all([Registry(tmp_path / "data").get_competition(id)], PathSource(raw))
    files = [path for path in prepared.paths.prepared.rglob("*") if path.is_file() and path.stat().st_nlink == 1]
    made = sum(path.stat().st_size for path in files if path.name not in ("description.md", "manifest.files.jsonl"))
    assert check.disk_at_peak is not None
    assert check.disk_at_end is not None
    assert check.disk_at_peak > check.disk_at_end > 0.5 * made


def _packed(folder: Path, inner: str, content: bytes) -> None:
    """A raw folder whose only file is an archive with one table and one image."""
    with TemporaryDirectory() as made:
        Path(made, "t.csv").write_bytes(content)
        Path(made, "i.png").write_bytes(content)
        target = folder / inner
        target.parent.mkdir(parents=True)
        if inner.endswith(".7z"):
            with py7zr.SevenZipFile(target, "w") as archive:
                archive.writeall(made, "train")
        else:
            mode = "w:gz" if inner.endswith("gz") else "w:"
            with tarfile.open(target, mode) as archive:
                archive.add(made, "train")


@pytest.mark.parametrize("inner", ["train.7z", "sub/train.tar", "train.tar.gz"])
def test_a_check_counts_the_contents_of_7z_and_tar_or_says_it_cannot(tmp_path: Path, inner: str) -> None:
    _packed(tmp_path / "raw", inner, b"1,2\n" * 5000)
    (check,) = check_all([Registry(tmp_path / "data").get_competition(TITANIC)], PathSource(tmp_path / "raw"))
    own = (tmp_path / "raw" / inner).stat().st_size
    if inner.endswith("gz"):
        assert (check.disk_at_end, check.disk_at_peak) == (own, own)
        assert check.advice == "allow more: the contents of train.tar.gz are not counted"
    else:
        assert (check.disk_at_end, check.disk_at_peak, check.advice) == (40_000, 60_000, "")


def test_a_check_says_that_nested_archives_take_more_space(tmp_path: Path) -> None:
    _packed(tmp_path / "raw", "train.7z", b"x")
    archive = _zip(tmp_path / "raw", tmp_path / "raw.zip")
    (check,) = check_all([Registry(tmp_path / "data").get_competition(TITANIC)], PathSource(archive))
    assert check.advice == "allow more: the contents of train.7z are not counted"


def test_a_missing_published_file_is_reported(tmp_path: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    prepare(competition, PathSource(_raw(TITANIC, tmp_path)), UNCHECKED)
    checksums = tmp_path / "checksums.yaml"
    checksums.write_text(f"public: {{more.csv: {'a' * 32}}}\n")
    (found,) = verify(replace(competition, checksums=checksums))
    assert found == ("public/more.csv", f"is missing, though one with md5 {'a' * 32} is published")


def test_a_repacked_archive_can_be_used_unpacked_and_is_then_verified(tmp_path: Path) -> None:
    raw = _raw(TITANIC, tmp_path)
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    with pytest.raises(PrerequisiteError, match="unpack it into a folder and pass that with --from"):
        prepare(competition, PathSource(_zip(raw, tmp_path / "again.zip")))
    with pytest.raises(PrerequisiteError, match="prepared files differ from the published ones"):
        prepare(competition, PathSource(raw))  # a twin's


def test_a_check_says_that_a_data_dir_is_for_the_other_kind(tmp_path: Path) -> None:
    prepare(Registry(tmp_path / "twins").get_competition(TITANIC), TwinSource())
    other = Registry(tmp_path / "twins").get_competition(NOMAD)
    (check,) = check_all([other], PathSource(_raw(NOMAD, tmp_path / "raw")))
    assert "holds twins" in check.advice


def test_a_check_of_many_continues_if_one_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, raw = Registry(tmp_path / "data"), _raw(TITANIC, tmp_path)
    for id in (NOMAD, TITANIC):
        shutil.copytree(raw, registry.get_competition(id).raw_dir)
    look = Path.iterdir

    def closed(self: Path) -> Iterable[Path]:
        if self == registry.get_competition(NOMAD).raw_dir:
            raise PermissionError(errno.EACCES, "no", str(self))
        return look(self)

    monkeypatch.setattr(Path, "iterdir", closed)
    nomad, titanic = check_all([registry.get_competition(id) for id in (NOMAD, TITANIC)], LocalSource())
    assert nomad.advice == f"cannot read {registry.get_competition(NOMAD).raw_dir}: permission denied"
    assert titanic.data == "raw"


def test_placed_files_are_links_from_a_folder_and_writable(tmp_path: Path) -> None:
    raw = _raw("histopathologic-cancer-detection", tmp_path)
    competition = Registry(tmp_path / "data").get_competition("histopathologic-cancer-detection")
    prepare(competition, PathSource(raw), UNCHECKED)
    images = list(competition.public_dir.glob("train/*.tif"))
    assert images
    for image in images:
        assert image.samefile(raw / "train" / image.name)
        assert image.stat().st_mode & 0o777 == 0o644
    assert (competition.public_dir / "train_labels.csv").stat().st_mode & 0o777 == 0o644


class TestRawThatTheReferenceTouched:
    """It unpacks archives into raw/ and deletes from it."""

    def test_unpacked_archives_beside_the_packed_ones_do_no_harm(self, tmp_path: Path) -> None:
        raw = _raw(NOMAD, tmp_path)
        clean = Registry(tmp_path / "clean").get_competition(NOMAD)
        prepare(clean, PathSource(raw), UNCHECKED)
        for name in ("train.zip", "train.csv.zip", "test.zip", "test.csv.zip"):
            with zipfile.ZipFile(raw / name) as archive:
                archive.extractall(raw / name.removesuffix(".zip"))
        touched = Registry(tmp_path / "touched").get_competition(NOMAD)
        shutil.copytree(raw, touched.raw_dir)
        prepare(touched, LocalSource(), UNCHECKED)
        assert contents(touched.paths.prepared) == contents(clean.paths.prepared)

    def test_a_file_that_was_deleted_comes_from_the_archive_when_there_is_one(self, tmp_path: Path) -> None:
        raw = _raw(TITANIC, tmp_path)
        competition = Registry(tmp_path / "data").get_competition(TITANIC)
        _zip(raw, competition.paths.archive)
        shutil.copytree(raw, competition.raw_dir)
        (competition.raw_dir / "train.csv").unlink()
        assert prepare(competition, LocalSource(), UNCHECKED)

    def test_a_deleted_file_is_named_if_there_is_no_archive(self, tmp_path: Path) -> None:
        competition = Registry(tmp_path / "data").get_competition(TITANIC)
        shutil.copytree(_raw(TITANIC, tmp_path), competition.raw_dir)
        (competition.raw_dir / "train.csv").unlink()
        with pytest.raises(PrerequisiteError, match=r"lacks train\.csv"):
            prepare(competition, LocalSource(), UNCHECKED)


def test_raw_files_are_unpacked_only_to_be_kept(tmp_path: Path) -> None:
    raw = _raw(NOMAD, tmp_path)
    for keep in (False, True):
        competition = Registry(tmp_path / f"data-{keep}").get_competition(NOMAD)
        _zip(raw, competition.paths.archive)
        prepare(competition, LocalSource(), Options(verify=False, keep_raw=keep))
        assert competition.raw_dir.exists() is keep
        if keep:
            assert {path.name for path in competition.raw_dir.iterdir()} == {path.name for path in raw.iterdir()}


def test_a_raw_folder_is_never_replaced(tmp_path: Path) -> None:
    raw = _raw(TITANIC, tmp_path)
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    shutil.copytree(raw, competition.raw_dir)
    (competition.raw_dir / "notes.txt").write_text("mine")
    archive, keep = _zip(raw, tmp_path / "some.zip"), Options(verify=False, keep_raw=True)
    (competition.raw_dir / "train.csv").unlink()
    with pytest.raises(PrerequisiteError, match=r"raw is not what .*some\.zip holds: move it away"):
        prepare(competition, PathSource(archive), keep)
    shutil.copy(raw / "train.csv", competition.raw_dir)
    assert prepare(competition, PathSource(archive), keep)
    assert (competition.raw_dir / "notes.txt").read_text() == "mine"


def test_a_raw_folder_is_not_replaced_by_a_twin(tmp_path: Path) -> None:
    prepare(Registry(tmp_path).get_competition(TITANIC), TwinSource())
    competition = Registry(tmp_path).get_competition(NOMAD)
    competition.raw_dir.mkdir(parents=True)
    (competition.raw_dir / "notes.txt").write_text("mine")
    with pytest.raises(PrerequisiteError, match="raw does not hold a twin: move it away"):
        prepare(competition, TwinSource())
    assert (competition.raw_dir / "notes.txt").read_text() == "mine"


def test_a_half_removed_twin_is_remade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = Registry(tmp_path / "a").get_competition(NOMAD)
    whole = contents(TwinSource().fetch(competition))
    remove = shutil.rmtree

    def remove_a_little(folder: Path) -> None:
        next(path for path in folder.rglob("*") if path.is_file()).unlink()
        raise RuntimeError("power cut")

    monkeypatch.setattr(shutil, "rmtree", remove_a_little)
    with pytest.raises(RuntimeError, match="power cut"):
        TwinSource(seed=1).fetch(competition)
    monkeypatch.setattr(shutil, "rmtree", remove)
    assert contents(TwinSource().fetch(competition)) == whole


def test_an_unreadable_record_of_a_twin_is_remade(tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition(TITANIC)
    TwinSource().fetch(competition)
    competition.paths.twin.write_text("")
    TwinSource().fetch(competition)
    assert TwinSource().matches(json.loads(competition.paths.twin.read_text()))


def test_a_wrong_data_set_is_noticed_by_the_samples_score(tmp_path: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    shutil.copytree(_raw(TITANIC, tmp_path), competition.raw_dir)
    with pytest.raises(PrerequisiteError, match=r"scores 0\.\d+, not 0\.50345"):
        prepare(competition, LocalSource())
    assert not competition.paths.prepared.exists()
    assert prepare(competition, LocalSource(), UNCHECKED)


def test_one_competition_gets_the_threads_of_all_jobs(tmp_path: Path) -> None:
    list(prepare_many(Registry(tmp_path), ["spaceship-titanic"], TwinSource(), UNCHECKED, jobs=6))
    assert threads() == 6
    list(prepare_many(Registry(tmp_path), ["spaceship-titanic"], TwinSource(), UNCHECKED, jobs=1))
    assert threads() == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_several_at_once_give_the_same_and_one_failure_does_not_stop_the_others(jobs: int, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "data")
    progress = RecordingProgress()
    progress_by_id: dict[str, Progress] = {NOMAD: progress}
    ids = [NOMAD, "no-such-competition", TITANIC]
    outcomes = {
        outcome.id: outcome
        for outcome in prepare_many(registry, ids, TwinSource(), UNCHECKED, jobs=jobs, progress=progress_by_id)
    }
    assert {id: outcome.status for id, outcome in outcomes.items()} == {
        NOMAD: "prepared",
        "no-such-competition": "failed",
        TITANIC: "prepared",
    }
    assert "no competition" in outcomes["no-such-competition"].reason
    assert "preparing" in progress.stages
    alone = Registry(tmp_path / "alone").get_competition(NOMAD)
    prepare(alone, TwinSource())
    assert contents(alone.paths.prepared) == contents(registry.get_competition(NOMAD).paths.prepared)


@dataclass(frozen=True)
class Deadly(TwinSource):
    """Twins, but the process that makes one of them is killed, as by a system that has run out of memory."""

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:
        if competition.id == TITANIC:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fetch(competition, progress)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_process_does_not_affect_the_others(jobs: int, tmp_path: Path) -> None:
    ids = [TITANIC, NOMAD, "random-acts-of-pizza"]
    found = {o.id: o.status for o in prepare_many(Registry(tmp_path), ids, Deadly(), UNCHECKED, jobs=jobs)}
    assert found == {TITANIC: "killed", NOMAD: "prepared", "random-acts-of-pizza": "prepared"}
    assert list(prepare_many(Registry(tmp_path), [], Deadly(), UNCHECKED, jobs=2)) == []


@dataclass(frozen=True)
class Quitting(TwinSource):
    """Twins whose code ends the program."""

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:
        if competition.id == TITANIC:
            sys.exit("enough")
        if competition.id == NOMAD:
            os._exit(0)
        return super().fetch(competition, progress)


@pytest.mark.parametrize("jobs", [1, 2])
def test_code_that_ends_the_program_does_not_end_the_batch(jobs: int, tmp_path: Path) -> None:
    ids = [TITANIC, NOMAD, "random-acts-of-pizza"]
    found = {o.id: o for o in prepare_many(Registry(tmp_path), ids, Quitting(), UNCHECKED, jobs=jobs)}
    assert {id: outcome.status for id, outcome in found.items()} == {
        TITANIC: "bug",
        NOMAD: "killed",
        "random-acts-of-pizza": "prepared",
    }
    assert "Traceback" in found[TITANIC].reason
    assert f"the code of {TITANIC} called sys.exit('enough')" in found[TITANIC].reason
    (alone,) = prepare_many(Registry(tmp_path), [TITANIC], Quitting(), UNCHECKED)
    assert alone.status == "bug"
