"""Competitions that need a file which their original's archive does not hold."""

from pathlib import Path

import pytest

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.errors import PrerequisiteError
from mlebench.registry import Registry


def test_labels_that_were_published_later_are_asked_for_by_name(tmp_path: Path) -> None:
    competition = Registry(tmp_path / "twin").get_competition("freesound-audio-tagging-2019")
    raw = TwinSource(size=0.5).fetch(competition)
    labels = raw / "FSDKaggle2019.meta.zip"
    content = labels.read_bytes()
    labels.unlink()
    competition = Registry(tmp_path / "data").get_competition(competition.id)
    with pytest.raises(
        PrerequisiteError, match=r"Get FSDKaggle2019\.meta\.zip .* from Zenodo, and put it, .* into .*raw"
    ):
        prepare(competition, PathSource(raw))
    labels.write_bytes(content)
    prepare(competition, PathSource(raw), Options(verify=False))
    assert not [path for path in competition.public_dir.rglob("*") if "meta" in path.name]
