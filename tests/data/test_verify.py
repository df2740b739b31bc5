"""Prepared data against its record, at any time."""

import shutil
import zipfile
from pathlib import Path

import pytest

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.verification import verify
from mlebench.errors import NotPreparedError
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
        "private/answers.csv": "has another md5 than when it was written",
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
