"""Equal files of two profiles are hard links to the same bytes; what one profile does later leaves the other alone."""

import errno
import os
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.verification import verify
from mlebench.registry import Competition, Registry

ID = "histopathologic-cancer-detection"  # its pictures are placed, from an archive


REAL = 27_000  # bytes of a real picture: beside a twin's own, the manifest would not be small


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _packed_twin(tmp_path_factory.mktemp("twin"), TwinSource(size=2))


def _packed_twin(folder: Path, source: TwinSource) -> Path:
    raw = source.fetch(Registry(folder).get_competition(ID))
    with zipfile.ZipFile(folder / "raw.zip", "w") as packed:
        for path in sorted(path for path in raw.rglob("*") if path.is_file()):
            padding = bytes(REAL) if path.suffix == ".tif" else b""
            packed.writestr(str(path.relative_to(raw)), path.read_bytes() + padding)
    return folder / "raw.zip"


def _prepared(data_dir: Path, archive: Path, profile: str, *, force: bool = False) -> Competition:
    competition = Registry(data_dir, profile).get_competition(ID)
    object.__setattr__(competition, "checksums", data_dir / "none.yaml")
    prepare(competition, PathSource(archive), Options(verify=False, force=force))
    return competition


def _files(competition: Competition) -> dict[str, os.stat_result]:
    sides = (competition.public_dir, competition.private_dir)
    paths = (path for side in sides for path in side.rglob("*") if path.is_file())
    return {path.relative_to(competition.paths.prepared).as_posix(): path.stat() for path in paths}


def _disk_usage(*folders: Path) -> int:
    """Bytes on the disk as `du` counts them: each inode once."""
    paths = (path for folder in folders for path in (folder, *folder.rglob("*")))
    return sum({status.st_ino: status.st_blocks * 512 for status in map(os.lstat, paths)}.values())


@pytest.mark.parametrize("order", [("v1", "v2"), ("v2", "v1")])
def test_equal_files_take_their_space_once(archive: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    first = _prepared(tmp_path / "data", archive, order[0])
    before = {path: path.read_bytes() for path in first.paths.prepared.rglob("*") if path.is_file()}
    alone = _disk_usage(first.paths.prepared)
    second = _prepared(tmp_path / "data", archive, order[1])
    assert _disk_usage(first.paths.prepared, second.paths.prepared) <= 1.05 * alone
    files = _files(first), _files(second)
    for name in files[0].keys() & files[1].keys():
        equal = (first.paths.prepared / name).read_bytes() == (second.paths.prepared / name).read_bytes()
        assert (files[0][name].st_ino == files[1][name].st_ino) == equal, name
    assert sum(status.st_nlink == 2 for status in files[1].values()) > 50
    assert {path: path.read_bytes() for path in first.paths.prepared.rglob("*") if path.is_file()} == before
    for competition in (first, second):
        assert verify(competition) == verify(competition, deep=True) == []


def test_what_one_profile_does_later_leaves_the_other_alone(archive: Path, tmp_path: Path) -> None:
    first, second = (_prepared(tmp_path / "data", archive, profile) for profile in ("v1", "v2"))
    before = {name: (first.paths.prepared / name).read_bytes() for name in _files(first)}
    _prepared(tmp_path / "data", _packed_twin(tmp_path / "other", TwinSource(seed=1)), "v2", force=True)
    assert {name: (first.paths.prepared / name).read_bytes() for name in _files(first)} == before
    assert verify(first, deep=True) == verify(second, deep=True) == []
    assert any((second.paths.prepared / name).read_bytes() != before.get(name) for name in _files(second))


@pytest.mark.parametrize("fault", [errno.EPERM, errno.EMLINK, errno.EXDEV])
def test_where_links_are_impossible_there_are_copies(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    first = _prepared(tmp_path / "data", archive, "v1")

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, "link", refuse)
    second = _prepared(tmp_path / "data", archive, "v2")
    assert {status.st_nlink for status in (*_files(first).values(), *_files(second).values())} == {1}
    assert verify(first, deep=True) == verify(second, deep=True) == []
    assert not [path for path in second.paths.prepared.iterdir() if path.name.startswith("mlebench-")]


def test_a_file_that_was_changed_is_not_linked(archive: Path, tmp_path: Path) -> None:
    """Its record still says what it was, and so does its size."""
    first = _prepared(tmp_path / "data", archive, "v1")
    name = next(name for name in sorted(_files(first)) if name.endswith(".tif"))
    damaged = first.paths.prepared / name
    damaged.write_bytes(bytes(len(damaged.read_bytes())))
    readable = first.paths.prepared / sorted(_files(first))[-1]
    readable.chmod(0o600)  # of another mode: an agent may not read it
    second = _prepared(tmp_path / "data", archive, "v2")
    assert verify(second, deep=True) == []
    assert [difference.file for difference in verify(first, deep=True)] == [name]
    assert {path.stat().st_mode & 0o777 for path in second.paths.prepared.rglob("*.*") if path.is_file()} == {0o644}
