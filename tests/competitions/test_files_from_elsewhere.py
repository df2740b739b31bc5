"""Competitions that need a file that is not in their original's archive."""

import shutil
from pathlib import Path

import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.data.kaggle import KaggleSource
from mlebench.data.pipeline import Options, prepare
from mlebench.data.preflight import check_all
from mlebench.data.sources import PathSource, TwinSource
from mlebench.registry import Registry

ID, LABELS = "freesound-audio-tagging-2019", "FSDKaggle2019.meta.zip"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """The twin's raw folder, with the labels beside it."""
    raw = TwinSource(size=0.5).fetch(Registry(tmp_path / "twin").get_competition(ID))
    (raw / LABELS).rename(raw.parent / LABELS)
    return raw


@pytest.mark.parametrize("kind", ["folder", "archive", "archive, unpacked"])
def test_labels_that_were_published_later_are_found_beside_the_raw_data(tmp_path: Path, raw: Path, kind: str) -> None:
    competition = Registry(tmp_path / "data").get_competition(ID)
    source = raw if kind == "folder" else Path(shutil.make_archive(str(raw.parent / "kaggle"), "zip", raw))
    prepare(competition, PathSource(source), Options(verify=False, keep_raw=kind == "archive, unpacked"))
    assert competition.answers.stat().st_size
    assert not [path for path in competition.public_dir.rglob("*") if "meta" in path.name]


def test_labels_that_were_published_later_are_requested_by_name(tmp_path: Path, raw: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(ID)
    (raw.parent / LABELS).unlink()
    wanted = f"{LABELS} is not in Kaggle's archive: get it from the dataset FSDKaggle2019 on Zenodo"
    with pytest.raises(PrerequisiteError, match=wanted):
        prepare(competition, PathSource(raw))
    (check,) = check_all([competition], PathSource(raw))
    assert wanted in check.advice


def test_nothing_is_downloaded_as_long_as_they_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench.data.kaggle.download", lambda *_: pytest.fail("a download"))
    competition = Registry(tmp_path).get_competition(ID)
    with pytest.raises(PrerequisiteError, match=f"put it unchanged into {competition.paths.root}"):
        prepare(competition, KaggleSource())
