"""Prepared data against its record, at any time."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.verification import verify
from mlebench.errors import NotPreparedError
from mlebench.kit.parquet import content_hash
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


def _change(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_untouched_data_is_as_it_should_be(competition: Competition) -> None:
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
        "private/answers.csv": "has another md5 than is on record",
        f"public/train/{images[0].name}": "is missing",
        f"public/train/{images[1].name}": faults[f"public/train/{images[1].name}"],
        "public/extra.txt": "was not there before",
    }
    assert "5 bytes" in faults[f"public/train/{images[1].name}"]


def test_deep_reads_placed_files_too(competition: Competition) -> None:
    image = min(competition.public_dir.glob("train/*.tif"))
    content = bytearray(image.read_bytes())
    content[-1] ^= 1
    _change(image, bytes(content))
    assert verify(competition) == []
    assert [difference.file for difference in verify(competition, deep=True)] == [f"public/train/{image.name}"]


def test_linked_files_go_on_record_when_they_are_first_read(tmp_path: Path) -> None:
    raw = shutil.copytree(TwinSource().fetch(Registry(tmp_path / "twin").get_competition(ID)), tmp_path / "raw")
    competition = Registry(tmp_path / "data").get_competition(ID)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    prepare(competition, PathSource(raw), Options(verify=False))
    image = min(competition.public_dir.glob("train/*.tif"))
    time = image.stat().st_mtime_ns
    before = competition.paths.manifest.read_text()
    assert verify(competition) == []
    assert competition.paths.manifest.read_text() == before
    assert verify(competition, deep=True) == []
    content = bytearray(image.read_bytes())
    content[-1] ^= 1
    _change(image, bytes(content))
    assert [difference.file for difference in verify(competition)] == [f"public/train/{image.name}"]
    os.utime(image, ns=(time, time))
    assert verify(competition) == [], "size and time are as they were"
    assert dict(verify(competition, deep=True)) == {f"public/train/{image.name}": "has another md5 than is on record"}
    assert set(json.loads(before)) == set(json.loads(competition.paths.manifest.read_text()))


@pytest.mark.parametrize("known", [True, False])
def test_parquet_is_compared_by_what_it_holds(competition: Competition, known: bool) -> None:
    path = competition.public_dir / "meta.parquet"
    table = pa.table({"id": [1, 2]})
    pq.write_table(table, path)
    expected: dict[str, object] = {"public": {"meta.parquet": "0" * 32}}
    if known:
        expected["content"] = {"public": {"meta.parquet": content_hash(path)}}
    competition.checksums.write_text(json.dumps(expected))
    pq.write_table(table, path, compression="zstd")
    assert dict(verify(competition)) == {"public/meta.parquet": "was not there before"}
    pq.write_table(pa.table({"id": [1, 3]}), path)
    fault = f"has content {content_hash(path)}, published is"
    assert any(fault in difference.fault for difference in verify(competition)) == known
    path.unlink()
    assert any("no such file" in difference.fault for difference in verify(competition))


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


def test_unprepared_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotPreparedError):
        verify(Registry(tmp_path).get_competition(ID))
    shutil.rmtree(tmp_path)


def test_files_that_had_to_be_copied_are_as_they_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = shutil.copytree(TwinSource().fetch(Registry(tmp_path / "twin").get_competition(ID)), tmp_path / "raw")

    def no_links(*_, **__):
        raise OSError(18, "another disk")

    monkeypatch.setattr("os.link", no_links)
    competition = Registry(tmp_path / "data").get_competition(ID)
    object.__setattr__(competition, "checksums", tmp_path / "none.yaml")
    prepare(competition, PathSource(raw), Options(verify=False))
    image = min(competition.public_dir.glob("train/*.tif"))
    assert image.stat().st_nlink == 1
    assert image.read_bytes() == (raw / "train" / image.name).read_bytes()
    assert verify(competition, deep=True) == []
