"""Prepared data against its record, at any time."""

import errno
import json
import os
import shutil
import zipfile
from hashlib import md5
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.progress import RecordingProgress

from mlebench.core.errors import InvalidSubmissionError, NotPreparedError, PrerequisiteError
from mlebench.data import manifest, verification
from mlebench.data.manifest import recorded_files
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.verification import check_archive, check_sample_score, overwrite, verify
from mlebench.engine.parquet import content_hash
from mlebench.registry import Competition, Registry

ID = "histopathologic-cancer-detection"


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    """Prepared from an archive, so that placed files have checksums; nothing is published about it."""
    twin = Registry(tmp_path / "twin").get_competition(ID)
    raw = TwinSource().fetch(twin)
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        for path in sorted(path for path in raw.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(raw))
    competition = Registry(tmp_path / "data").get_competition(ID)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    prepare(competition, PathSource(tmp_path / "raw.zip"), Options(verify=False))
    return competition


@pytest.fixture
def linked(tmp_path: Path) -> Competition:
    """Prepared from a raw folder, so that only size and time of placed files are known."""
    raw = shutil.copytree(TwinSource().fetch(Registry(tmp_path / "twin").get_competition(ID)), tmp_path / "raw")
    competition = Registry(tmp_path / "linked").get_competition(ID)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    prepare(competition, PathSource(raw), Options(verify=False))
    return competition


def _images(competition: Competition) -> list[str]:
    return sorted(
        path.relative_to(competition.paths.prepared).as_posix() for path in competition.public_dir.glob("t*/*.tif")
    )


def _copy(competition: Competition) -> None:
    """As `cp -r` does: the same bytes in new files with new times."""
    prepared = competition.paths.prepared
    shutil.copytree(prepared, prepared.with_name("copy"), copy_function=shutil.copyfile)
    shutil.rmtree(prepared)
    prepared.with_name("copy").rename(prepared)


def _forbid_writing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A disk that is full, or read-only: a file may be opened, but it never gets its name."""

    def refuse(path: Path, *_: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "replace", refuse)


def _change(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_untouched_data_passes(competition: Competition) -> None:
    assert verify(competition) == []
    assert verify(competition, deep=True) == []


def test_every_kind_of_change_is_named(competition: Competition) -> None:
    images = sorted(competition.public_dir.glob("train/*.tif"))
    _change(competition.answers, competition.answers.read_bytes().replace(b",1", b",0", 1))
    images[0].unlink()
    _change(images[1], b"short")
    (competition.public_dir / "extra.txt").write_text("hello")
    faults = dict(verify(competition))
    assert faults == {
        "private/answers.csv": "does not have the md5 on record",
        f"public/train/{images[0].name}": "is missing",
        f"public/train/{images[1].name}": faults[f"public/train/{images[1].name}"],
        "public/extra.txt": "is not on record",
    }
    assert "5 bytes" in faults[f"public/train/{images[1].name}"]


@pytest.mark.parametrize("most_returned", [verification.MOST_RETURNED, 0])
def test_several_processes_find_what_one_does(
    linked: Competition, monkeypatch: pytest.MonkeyPatch, most_returned: int
) -> None:
    monkeypatch.setattr(verification, "MOST_RETURNED", most_returned)
    monkeypatch.setattr(manifest, "PART", 1)
    assert len(manifest.spans(linked.paths.prepared, 3)) == 3
    assert verify(linked, processes=3) == []
    images = [linked.paths.prepared / name for name in _images(linked)]
    for image in images[:2]:
        image.unlink()
    images[0].mkdir()
    images[1].symlink_to("nowhere")
    _change(images[2], b"short")
    _change(images[-1], images[-1].read_bytes())
    images[-2].unlink()
    (linked.public_dir / "extra.txt").touch()
    linked.sample_submission.unlink()
    linked.checksums.write_text(json.dumps({"private": {"answers.csv": "0" * 32}, "public": {"none.csv": "0" * 32}}))
    faults = verify(linked)
    assert len({difference.file for difference in faults}) == 9
    assert verify(linked, processes=3) == faults


def test_data_replaced_during_verification_gets_no_verdict(
    competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = verification._Comparison.differences

    def replaced_meanwhile(self: verification._Comparison, processes: int) -> list[verification.FileDifference]:
        manifest = json.loads(competition.paths.manifest.read_text())
        competition.paths.manifest.write_text(json.dumps(manifest | {"prepared_at": "later"}))
        return [
            *look(self, processes),
            verification.FileDifference("public/train.csv", "does not have the md5 on record"),
        ]

    monkeypatch.setattr(verification._Comparison, "differences", replaced_meanwhile)
    with pytest.raises(PrerequisiteError, match="prepared again in the meantime"):
        verify(competition)


def test_deep_reads_placed_files_too(competition: Competition) -> None:
    image = min(competition.public_dir.glob("train/*.tif"))
    content = bytearray(image.read_bytes())
    content[-1] ^= 1
    _change(image, bytes(content))
    assert verify(competition) == []
    assert [difference.file for difference in verify(competition, deep=True)] == [f"public/train/{image.name}"]


def test_linked_files_are_recorded_when_first_read(linked: Competition) -> None:
    image = min(linked.public_dir.glob("train/*.tif"))
    time = image.stat().st_mtime_ns
    before = linked.paths.manifest.read_text()
    listed = dict(recorded_files(linked.paths.prepared))
    assert verify(linked) == []
    assert dict(recorded_files(linked.paths.prepared)) == listed
    assert verify(linked, deep=True) == []
    content = bytearray(image.read_bytes())
    content[-1] ^= 1
    _change(image, bytes(content))
    assert [difference.file for difference in verify(linked)] == [f"public/train/{image.name}"]
    os.utime(image, ns=(time, time))
    assert verify(linked) == [], "size and time are as they were"
    assert dict(verify(linked, deep=True)) == {f"public/train/{image.name}": "does not have the md5 on record"}
    assert linked.paths.manifest.read_text() == before, "more is known, but the data is the same"


def test_files_are_recorded_even_if_others_differ(linked: Competition) -> None:
    (linked.public_dir / "extra.txt").touch()
    assert len(verify(linked, deep=True)) == 1
    _copy(linked)
    assert [difference.file for difference in verify(linked)] == ["public/extra.txt"]


def test_a_copy_of_data_passes_where_checksums_are_known(competition: Competition, linked: Competition) -> None:
    assert verify(linked, deep=True) == []
    for prepared in (competition, linked):
        _copy(prepared)
        assert verify(prepared) == []
        assert verify(prepared, deep=True) == []


@pytest.mark.parametrize("deep", [True, False])
def test_copied_files_without_a_checksum_are_not_called_changed(linked: Competition, deep: bool) -> None:
    _copy(linked)
    differences = verify(linked, deep=deep)
    assert [difference.file for difference in differences] == _images(linked)
    assert {difference.fault for difference in differences} == {
        "has a different time, and its checksum is unknown: it may have been changed; --adopt accepts it"
    }
    assert verify(linked, deep=deep, adopt=True) == []
    assert verify(linked) == []
    _change(linked.paths.prepared / _images(linked)[0], b"short")
    assert len(verify(linked, adopt=True)) == 1, "what is known to be changed is not adopted"


def test_a_published_checksum_decides_where_a_time_cannot(linked: Competition) -> None:
    table = linked.public_dir / "placed.csv"
    table.write_bytes(b"id\n1\n")
    listed = linked.paths.prepared / "manifest.files.jsonl"
    lines = [*listed.read_text().splitlines(), '["public/placed.csv", {"size": 5, "mtime_ns": 1}]']
    listed.write_text("\n".join(sorted(lines)))
    assert "its checksum is unknown" in dict(verify(linked))["public/placed.csv"]
    linked.checksums.write_text(json.dumps({"public": {"placed.csv": "0" * 32}}))
    for adopt in (True, False):
        assert [fault for _, fault in verify(linked, adopt=adopt)] == [
            f"has md5 {md5(table.read_bytes()).hexdigest()}, published is {'0' * 32}"
        ]
    linked.checksums.write_text(json.dumps({"public": {"placed.csv": md5(table.read_bytes()).hexdigest()}}))
    assert verify(linked) == []
    linked.checksums.unlink()
    assert verify(linked) == [], "it is on record now"


@pytest.mark.parametrize("known", [True, False])
def test_parquet_is_compared_by_its_content(competition: Competition, known: bool) -> None:
    path = competition.public_dir / "meta.parquet"
    table = pa.table({"id": [1, 2]})
    pq.write_table(table, path)
    expected: dict[str, object] = {"public": {"meta.parquet": "0" * 32}}
    if known:
        expected["content"] = {"public": {"meta.parquet": content_hash(path)}}
    competition.checksums.write_text(json.dumps(expected))
    pq.write_table(table, path, compression="zstd")
    assert dict(verify(competition)) == {"public/meta.parquet": "is not on record"}
    pq.write_table(pa.table({"id": [1, 3]}), path)
    fault = f"has content {content_hash(path)}, published is"
    assert any(fault in difference.fault for difference in verify(competition)) == known
    path.unlink()
    assert dict(verify(competition))["public/meta.parquet"].startswith("is missing")


def test_data_prepared_elsewhere_can_be_adopted(competition: Competition) -> None:
    competition.paths.manifest.unlink()
    assert [difference.file for difference in verify(competition)] == ["manifest.json"]
    assert verify(competition, adopt=True, deep=True) == []
    assert verify(competition, deep=True) == []
    _change(competition.answers, competition.answers.read_bytes().replace(b",1", b",0", 1))
    assert [difference.file for difference in verify(competition)] == ["private/answers.csv"]


def test_real_data_is_compared_with_the_published_checksums(competition: Competition) -> None:
    published = Registry(competition.paths.data_dir).get_competition(ID)
    assert {difference.file for difference in verify(published)} == {
        "public/train_labels.csv",
        "public/sample_submission.csv",
        "private/answers.csv",
    }
    competition.paths.manifest.unlink()
    assert verify(published, adopt=True)
    assert not competition.paths.manifest.exists(), "data that differs is not adopted"


def test_unprepared_data_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotPreparedError):
        verify(Registry(tmp_path).get_competition(ID))
    shutil.rmtree(tmp_path)


def test_the_archive_is_compared_too_when_every_byte_is_read(competition: Competition, tmp_path: Path) -> None:
    archive = competition.paths.archive
    shutil.copy(tmp_path / "raw.zip", archive)
    competition.checksums.write_text(json.dumps({"zip": md5(archive.read_bytes()).hexdigest()}))
    assert verify(competition, deep=True) == []
    archive.write_bytes(archive.read_bytes()[:100])
    assert verify(competition) == []
    assert [difference.file for difference in verify(competition, deep=True)] == [archive.name]
    competition.checksums.unlink()
    ((name, fault),) = verify(competition, deep=True)
    assert (name, fault.startswith("cannot be read")) == (archive.name, True)
    archive.unlink()
    assert verify(competition, deep=True) == []


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b"not JSON", b"\xff", b'{"source": {"kind": "local"}, "files": {"a": 1}}']
)
def test_an_unintelligible_manifest_is_reported(competition: Competition, content: bytes) -> None:
    competition.paths.manifest.write_bytes(content)
    assert dict(verify(competition, deep=True)) == {"manifest.json": "cannot be read; --adopt accepts it"}
    assert verify(competition, adopt=True) == []
    assert verify(competition) == []


@pytest.mark.parametrize("adopt", [True, False])
def test_things_that_are_not_files_are_reported(competition: Competition, adopt: bool) -> None:
    image = competition.paths.prepared / _images(competition)[0]
    image.unlink()
    image.symlink_to("nowhere")
    os.mkfifo(competition.public_dir / "pipe.csv")
    if adopt:
        competition.paths.manifest.unlink()
    assert dict(verify(competition, deep=True, adopt=adopt)) == {
        _images(competition)[0]: "cannot be read (No such file or directory)",
        "public/pipe.csv": "is not a file",
    }
    assert competition.paths.manifest.exists() == (not adopt)


def test_a_file_that_became_a_folder_or_a_link_is_reported(competition: Competition, tmp_path: Path) -> None:
    folder, to_folder, to_file = (competition.paths.prepared / name for name in _images(competition)[:3])
    shutil.copy2(to_file, tmp_path / "elsewhere")
    for path in (folder, to_folder, to_file):
        path.unlink()
    folder.mkdir()
    (folder / "inside").touch()
    to_folder.symlink_to(competition.private_dir)
    to_file.symlink_to(tmp_path / "elsewhere")  # its content is what counts
    names = [path.relative_to(competition.paths.prepared).as_posix() for path in (folder, to_folder)]
    assert dict(verify(competition)) == {
        names[0]: "is missing",
        f"{names[0]}/inside": "is not on record",
        names[1]: "is missing",
    }


def test_a_failing_disk_is_reported_with_the_file(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("mlebench.engine.raw_streams.md5_of", fail)
    assert dict(verify(competition))["private/answers.csv"] == "cannot be read (Input/output error)"


def test_files_missing_from_disk_are_reported(competition: Competition) -> None:
    competition.answers.unlink()
    assert dict(verify(competition)) == {"private/answers.csv": "is missing"}
    shutil.rmtree(competition.private_dir)
    assert dict(verify(competition)) == {"private/answers.csv": "is missing"}


def test_the_verdict_holds_even_if_it_cannot_be_recorded(
    linked: Competition, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = linked.paths.manifest.read_text()
    _forbid_writing(monkeypatch, errno.EROFS)
    assert verify(linked, deep=True) == []
    assert [record.message for record in caplog.records] == [
        f"{linked.paths.manifest} cannot be written (Read-only file system): nothing was recorded"
    ]
    _copy(linked)
    assert [difference.file for difference in verify(linked, adopt=True)] == ["manifest.json"]
    assert linked.paths.manifest.read_text() == before


@pytest.mark.parametrize("text", ["", "- a list\n", "public: [a]\n", "a: b: c"])
def test_broken_checksums_do_not_count_as_none(competition: Competition, text: str) -> None:
    competition.checksums.write_text(text)
    with pytest.raises(PrerequisiteError, match="does not hold checksums"):
        verify(competition)


def test_checksums_are_written_completely_or_not_at_all(
    competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    competition.checksums.write_text("zip: abc\n")
    _forbid_writing(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        overwrite(competition, competition.paths.raw, {})
    assert competition.checksums.read_text() == "zip: abc\n"


def test_an_ungradable_sample_submission_means_a_different_dataset(
    competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> float:
        raise InvalidSubmissionError("it lacks ids")

    monkeypatch.setattr(competition.grader, "_grade_fn", refuse)
    competition.paths.prepared.rename(competition.paths.staging)
    with pytest.raises(PrerequisiteError, match=r"cannot be graded \(it lacks ids\).*This is a different dataset"):
        check_sample_score(competition)


def test_an_unchanged_archive_is_read_once(
    competition: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, record = tmp_path / "raw.zip", competition.paths.archive_elsewhere_record
    competition.checksums.write_text(json.dumps({"zip": md5(archive.read_bytes()).hexdigest()}))
    progress = RecordingProgress()
    record.write_text("[")
    check_archive(competition, archive, progress)
    size = archive.stat().st_size
    end = ("checking the archive", size, size)
    assert progress.events.count(end) == 1
    check_archive(competition, archive, progress)
    assert progress.events.count(end) == 1
    content = bytearray(archive.read_bytes())
    content[-1] ^= 1
    archive.write_bytes(content)
    os.utime(archive, ns=(1, 1))
    for _ in range(2):
        with pytest.raises(PrerequisiteError, match="not the published archive"):
            check_archive(competition, archive, progress)
    assert progress.events.count(end) == 2


def test_files_that_had_to_be_copied_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = shutil.copytree(TwinSource().fetch(Registry(tmp_path / "twin").get_competition(ID)), tmp_path / "raw")

    def no_links(*_: object, **__: object) -> NoReturn:
        raise OSError(18, "another disk")

    monkeypatch.setattr("os.link", no_links)
    competition = Registry(tmp_path / "data").get_competition(ID)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    prepare(competition, PathSource(raw), Options(verify=False))
    image = min(competition.public_dir.glob("train/*.tif"))
    assert image.stat().st_nlink == 1
    assert image.read_bytes() == (raw / "train" / image.name).read_bytes()
    assert verify(competition, deep=True) == []
