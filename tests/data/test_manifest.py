"""The record beside prepared data: a small head, a list that can be streamed, and one hash of the data."""

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.data import manifest as module
from mlebench.data.manifest import ContentIdentity, Files, files_in, read_head, recorded_files, spans, with_checksums
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.state import data_identity, read_manifest_head, source_kind
from mlebench.data.verification import verify
from mlebench.records.data import DataSource
from mlebench.registry import Competition, Registry

ID = "spaceship-titanic"
# Placed files, zips that are packed and unpacked, 7z and tar inside, parquet, JSON, BSON, arrays.
KINDS = [
    ID,
    "histopathologic-cancer-detection",
    "random-acts-of-pizza",
    "movie-review-sentiment-analysis-kernels-only",
    "invasive-species-monitoring",
    "statoil-iceberg-classifier-challenge",
    "inaturalist-2019-fgvc6",
    "nomad2018-predict-transparent-conductors",
    "hms-harmful-brain-activity-classification",
    "text-normalization-challenge-english-language",
]


def _raw(id: str, folder: Path, seed: int = 0) -> Path:
    return shutil.copytree(TwinSource(seed).fetch(Registry(folder / "twin").get_competition(id)), folder / "raw")


def _identity(prepared: Path, files: Files | None = None) -> str:
    identity = ContentIdentity(prepared)
    for name, facts in files_in(prepared) if files is None else sorted(files.items()):
        identity.add(name, facts)
    return identity.hexdigest()


def _prepared(id: str, data_dir: Path, raw: Path) -> Competition:
    competition = Registry(data_dir).get_competition(id)
    prepare(competition, PathSource(raw), Options(verify=False))
    return competition


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    return _prepared(ID, tmp_path / "data", _raw(ID, tmp_path))


def _old_layout(competition: Competition) -> dict[str, Any]:
    """The first schema's layout, in one file."""
    files = dict(recorded_files(competition.paths.prepared))
    old = {
        "competition": competition.id,
        "profile": "v1",
        "source": {"kind": "local"},
        "prepared_at": "2026-11-01T00:00:00+00:00",
        "versions": {"python": "3.11.7", "mlebench": "0.1.0"},
        "files": files,
    }
    competition.paths.manifest.write_text(json.dumps(old, indent=1))
    (competition.paths.prepared / "manifest.files.jsonl").unlink()
    return old


@pytest.mark.parametrize("id", KINDS)
def test_the_identity_does_not_depend_on_the_source(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = _raw(id, tmp_path)
    archive = Path(shutil.make_archive(str(tmp_path / "archive"), "zip", raw))
    linked = data_identity(_prepared(id, tmp_path / "linked", raw))
    unpacked = data_identity(_prepared(id, tmp_path / "unpacked", archive))
    with monkeypatch.context() as patch:
        patch.setattr("os.link", lambda *_, **__: (_ for _ in ()).throw(OSError(18, "another disk")))
        copied = data_identity(_prepared(id, tmp_path / "copied", raw))
    adopted = Registry(tmp_path / "copied").get_competition(id)
    object.__setattr__(adopted, "checksums", tmp_path / "none.yaml")
    adopted.paths.manifest.unlink()
    (adopted.public_dir / "description.md").chmod(0o644)
    (adopted.public_dir / "description.md").write_text("other words")
    assert verify(adopted, adopt=True) == []
    assert linked is not None
    assert {linked, unpacked, copied, data_identity(adopted)} == {linked}
    assert source_kind(adopted) == "unknown"


def test_the_identity_distinguishes_data(competition: Competition, tmp_path: Path) -> None:
    same = data_identity(competition)
    other = _prepared(ID, tmp_path / "other data", _raw(ID, tmp_path / "other", seed=1))
    assert data_identity(other) != same
    prepared = competition.paths.prepared
    table = competition.answers.read_bytes()
    for content in (table.replace(b"True", b"Eurt", 1), table + b"\n"):
        competition.answers.chmod(0o644)
        competition.answers.write_bytes(content)
        assert _identity(prepared) != same
    competition.answers.write_bytes(table)
    assert _identity(prepared) == same
    (competition.public_dir / "more.txt").touch()
    assert _identity(prepared) != same


def test_an_archive_counts_by_what_it_holds(tmp_path: Path) -> None:
    """Compressed sizes depend on the library that compresses."""
    found = []
    for content, method in ((b"a" * 999, 0), (b"a" * 999, 8), (b"b" * 999, 8)):
        shutil.rmtree(tmp_path / "public", ignore_errors=True)
        (tmp_path / "public").mkdir()
        with zipfile.ZipFile(tmp_path / "public/train.zip", "w", method) as archive:
            archive.writestr("train.csv", content)
        found.append(_identity(tmp_path))
    assert found[0] == found[1] != found[2]
    for content in (b"no archive", b"none  ither"):
        (tmp_path / "public/train.zip").write_bytes(content)
        found.append(_identity(tmp_path))
    assert len(set(found)) == 4


def test_tables_that_were_placed_are_read_for_their_md5_once(
    competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = competition.paths.prepared
    files = dict(with_checksums(prepared, files_in(prepared)))
    assert {name for name, facts in files.items() if "md5" in facts} == {
        name for name in files if name.endswith(".csv")
    }
    monkeypatch.setattr("mlebench.engine.raw_streams.md5_of", lambda *_: 1 / 0)
    files = dict(with_checksums(prepared, files.items()))
    assert _identity(prepared, files) == data_identity(competition)


def test_the_head_is_read_without_the_list(competition: Competition) -> None:
    head = read_manifest_head(competition)
    (competition.paths.prepared / "manifest.files.jsonl").unlink()
    assert read_manifest_head(competition) == head
    assert source_kind(competition) == "local"
    assert dict(verify(competition)).keys() >= {"manifest.json"}
    assert len(competition.paths.manifest.read_bytes()) < 2000


def test_no_head_is_written_before_its_list(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(module, "write_whole", lambda path, _: written.append(path.name))
    monkeypatch.setattr("mlebench.records.base.write_whole", lambda path, _: written.append(path.name))
    head = read_manifest_head(competition)
    assert head
    module.rewrite_manifest(competition.paths.prepared, head, [])
    assert written == ["manifest.files.jsonl", "manifest.json"]


def test_the_list_has_a_line_for_each_file_and_is_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES", 2)
    names = ['public/"quoted", {odd}.csv', "public/é\u2028\n.txt", "private/a.csv", "public/}, {.csv", "public/b\udcff"]
    files = {name: {"size": place, "mtime_ns": 10**18 + place} for place, name in enumerate(names)}
    path = tmp_path / "manifest.files.jsonl"
    write_whole(path, module._lines(sorted(files.items())))
    assert list(recorded_files(tmp_path)) == sorted(files.items())
    assert len(path.read_text().split("\n")) == len(names) + 1


def test_a_manifest_of_the_first_schema_is_read_and_brought_up_to_date(competition: Competition) -> None:
    identity = data_identity(competition)
    old = _old_layout(competition)
    head = read_manifest_head(competition)
    assert head
    assert (head.mlebench, head.files, head.source) == ("0.1.0", len(old["files"]), DataSource(kind="local"))
    assert head.bytes == sum(facts["size"] for facts in old["files"].values())
    assert data_identity(competition) is None
    assert dict(recorded_files(competition.paths.prepared)) == old["files"]
    object.__setattr__(competition, "checksums", competition.paths.root / "none.yaml")
    assert verify(competition) == []
    assert dict(recorded_files(competition.paths.prepared)) == old["files"]
    assert data_identity(competition) == identity
    assert json.loads(competition.paths.manifest.read_text())["prepared_at"] == old["prepared_at"]


def test_a_manifest_of_a_newer_version_says_so(competition: Competition) -> None:
    competition.paths.manifest.write_text('{"schema": 99, "mlebench": "9.0"}')
    for read in (read_manifest_head, data_identity, source_kind, verify):
        with pytest.raises(PrerequisiteError, match=r"manifest\.json was written by mlebench 9\.0.*update mlebench"):
            read(competition)


def test_data_without_a_manifest_has_no_identity(competition: Competition) -> None:
    competition.paths.manifest.unlink()
    assert read_manifest_head(competition) is None
    assert data_identity(competition) is None
    assert source_kind(competition) == "unknown"


def test_an_unreadable_manifest_is_named(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_bytes

    def closed(path: Path) -> bytes:
        if path == competition.paths.manifest:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", closed)
    with pytest.raises(PrerequisiteError, match=f"cannot read {competition.paths.manifest}: permission denied"):
        data_identity(competition)


def test_times_and_checksums_that_are_learned_later_change_nothing(competition: Competition) -> None:
    before = data_identity(competition)
    for path in competition.public_dir.iterdir():
        os.utime(path, ns=(time.time_ns(), 10**18))
    object.__setattr__(competition, "checksums", competition.paths.root / "none.yaml")
    assert verify(competition, deep=True) == []
    assert data_identity(competition) == before
    head = read_head(competition.paths.manifest)
    assert head
    assert head.identity == _identity(competition.paths.prepared)


NAMES = st.lists(st.sampled_from(["a", "b", "a.b", "a-b", "a0", "é", "\U0001f600"]), min_size=1, max_size=3)


def _make_files(prepared: Path, names: list[list[str]]) -> None:
    for parts in names:
        path = prepared.joinpath("public", *parts)
        with suppress(FileExistsError, NotADirectoryError):  # a file where another needs a folder
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_dir():
                path.write_text("x" * len(parts))


@settings(max_examples=60, deadline=None)
@given(st.lists(NAMES, max_size=12))
def test_files_of_a_folder_come_in_the_order_of_their_names(names: list[list[str]]) -> None:
    with TemporaryDirectory() as folder:
        prepared = Path(folder)
        _make_files(prepared, names)
        found = list(files_in(prepared))
        expected = [path for path in prepared.rglob("*") if path.is_file()]
        assert [name for name, _ in found] == sorted(path.relative_to(prepared).as_posix() for path in expected)
        assert all(facts["size"] == (prepared / name).stat().st_size for name, facts in found)


@settings(max_examples=60, deadline=None)
@given(st.lists(NAMES, max_size=12), st.sets(NAMES.map("/".join), min_size=4), st.integers(2, 4))
def test_parts_of_a_list_and_of_a_folder_cover_each_file_once(
    there: list[list[str]], listed: set[str], count: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        prepared = Path(folder)
        _make_files(prepared, there)
        entries = [(f"public/{name}", {"size": 0}) for name in sorted(listed)]
        write_whole(prepared / "manifest.files.jsonl", module._lines(entries))
        patch.setattr(module, "PART", 1)
        parts = spans(prepared, count)
        assert [entry for part in parts for entry in recorded_files(prepared, part)] == entries
        assert [entry for part in parts for entry in files_in(prepared, part)] == list(files_in(prepared))
        for part in parts[1:]:
            assert next(recorded_files(prepared, part))[0] == part.first


DAMAGES: list[Callable[[list[bytes]], list[bytes]]] = [
    lambda lines: lines[:-1] + [lines[-1][:-9]],
    lambda lines: [*lines, b'["public/z.csv", {"mtime_ns": 1}]'],
    lambda lines: [*lines, b'["public/z.csv", {"size": "1"}]'],
    lambda lines: [*lines, b"[1, 2]"],
    lambda lines: [*lines, b"\xff"],
    lambda lines: [*lines, b"", b""],
    lambda lines: lines[::-1],
    lambda lines: lines + lines,
    lambda lines: [*lines[1:], lines[0]],
    lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_a_list_is_found_in_parts_of_it_too(
    competition: Competition, damage: Callable[[list[bytes]], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART", 1)
    prepared = competition.paths.prepared
    path = prepared / "manifest.files.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in damage(path.read_bytes().splitlines())))
    for count in range(1, 5):
        with pytest.raises(module.UnreadableListError):
            [list(recorded_files(prepared, part)) for part in spans(prepared, count)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_list_that_is_damaged_anywhere_is_ignored(
    competition: Competition, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    """What was compared before the damage was found leaves no trace."""
    object.__setattr__(competition, "checksums", competition.paths.root / "none.yaml")
    path = competition.paths.prepared / "manifest.files.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"\n".join(damage(whole.splitlines())))
    (competition.public_dir / "added.txt").touch()
    assert verify(competition) == [("manifest.json", "cannot be read; --adopt accepts it")]
    (competition.public_dir / "added.txt").unlink()
    assert verify(competition, adopt=True) == []
    assert verify(competition) == []
    assert dict(recorded_files(competition.paths.prepared)).keys() == {
        json.loads(line)[0] for line in whole.splitlines()
    }
