"""Agents can write to copies of public files: prepared files are writable, also those of older versions."""

import json
import shutil
from pathlib import Path

import pytest

from mlebench.core.paths import MANIFEST_FILES
from mlebench.data import modes
from mlebench.data.manifest import read_head, recorded_files
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.data.verification import verify
from mlebench.registry import Competition, Registry

ID = "aerial-cactus-identification"  # images, some of them inside archives


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    prepare(Registry(data).get_competition(ID), TwinSource(size=0.01))
    return data


@pytest.fixture
def older(prepared: Path, tmp_path: Path) -> Competition:
    """The data as an earlier version left it, with a raw file that was linked."""
    shutil.copytree(prepared, tmp_path / "data")
    competition = Registry(tmp_path / "data").get_competition(ID)
    where = competition.paths
    (where.public / "sample_submission.csv").replace(where.raw / "linked.csv")
    (where.public / "sample_submission.csv").hardlink_to(where.raw / "linked.csv")
    manifest = json.loads(where.manifest.read_bytes())
    del manifest["writable"]
    where.manifest.write_text(json.dumps(manifest))
    for path in files_of(competition):
        path.chmod(0o444)
    return competition


def files_of(competition: Competition) -> list[Path]:
    return [path for side in ("public", "private") for path in (competition.paths.prepared / side).rglob("*.*")]


def modes_of(competition: Competition) -> set[int]:
    files = [*files_of(competition), competition.paths.raw / "linked.csv"]
    return {path.stat().st_mode & 0o777 for path in files if path.is_file()}


def test_what_is_prepared_is_writable_and_the_manifest_says_so(prepared: Path) -> None:
    competition = Registry(prepared).get_competition(ID)
    head = read_head(competition.paths.manifest)
    assert head is not None
    assert head.writable
    assert {path.stat().st_mode & 0o777 for path in files_of(competition) if path.is_file()} == {0o644}


@pytest.mark.parametrize("command", ["prepare", "verify", "deep", "adopt"])
def test_older_data_and_its_raw_files_become_writable_once(
    older: Competition, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_head(older.paths.manifest)
    assert before is not None

    def meet() -> None:
        if command == "prepare":
            assert not prepare(older, TwinSource(size=0.01))
        else:
            assert verify(older, deep=command == "deep", adopt=command == "adopt") == []

    meet()
    assert modes_of(older) == {0o644}
    after = read_head(older.paths.manifest)
    assert after == before.changed(writable=True)
    monkeypatch.setattr(modes, "let_owners_write", lambda _: pytest.fail("every file is looked at again"))
    meet()


def test_a_manifest_of_the_first_schema_keeps_its_list(older: Competition) -> None:
    where = older.paths
    files = dict(recorded_files(where.prepared))
    head = json.loads(where.manifest.read_bytes())
    where.manifest.write_text(json.dumps(head | {"schema": 1, "files": files}))
    (where.prepared / MANIFEST_FILES).unlink()
    assert verify(older) == []
    assert modes_of(older) == {0o644}
    assert dict(recorded_files(where.prepared)) == files


def test_data_that_somebody_else_prepared_is_left_alone_until_it_is_adopted(older: Competition) -> None:
    older.paths.manifest.unlink()
    (older.paths.prepared / MANIFEST_FILES).unlink()
    assert [difference.file for difference in verify(older)] == ["manifest.json"]
    assert modes_of(older) == {0o444}
    assert verify(older, adopt=True) == []
    assert modes_of(older) == {0o644}


def test_data_whose_modes_cannot_be_changed_is_used_as_it_is(
    older: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(modes, "let_owners_write", refuse)
    assert not prepare(older, TwinSource(size=0.01))
    head = read_head(older.paths.manifest)
    assert head is not None
    assert not head.writable
