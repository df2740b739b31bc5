"""Damaged raw data is for the person at the keyboard to fix: no damage looks like our bug.

MLEBENCH_DAMAGES says how many kinds of damage are tried on each competition; they are the same each time.
"""

import importlib
import io
import os
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.data.batch import PrepareOutcome, prepare_many
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.kit import Output, Raw, accepts_paths, md5_of, open_raw
from mlebench.kit.twins import TwinFolder, seven_zip_bytes, zip_bytes
from mlebench.registry import Registry

DAMAGES = int(os.environ.get("MLEBENCH_DAMAGES", "2"))
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".bson", ".npy", ".txt", ".tfrec", ".tfrecords", ".npz")
ARCHIVES = (".zip", ".7z", ".tar", ".gz", ".tgz", ".bz2")


def _garbage(content: bytes) -> bytes:
    return random.Random(0).randbytes(max(len(content), 50))


def _other_columns(content: bytes) -> bytes:
    first, line, rest = content.partition(b"\n")
    return re.sub(rb"[A-Za-z]", b"q", first) + line + rest


def _words_for_numbers(content: bytes) -> bytes:
    first, line, rest = content.partition(b"\n")
    return first + line + re.sub(rb"\d", b"x", rest)


def _other_encoding(content: bytes) -> bytes:
    return content.decode("latin-1").encode("utf-16")


WAYS: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "garbage": _garbage,
    "cut off": lambda content: content[: len(content) // 2],
    "a web page": lambda _: b"<html>\n<body>Too many requests</body>\n</html>\n",
    "only its first line": lambda content: content.partition(b"\n")[0] + b"\n",
    "other columns": _other_columns,
    "words for numbers": _words_for_numbers,
    "another encoding": _other_encoding,
    "an empty JSON list": lambda _: b"[]",
    "an empty JSON object": lambda _: b"{}",
}


def _damageable(raw: Path) -> list[tuple[Path, str | None]]:
    """Files, each with one of its members or None: one of every kind of file, and of zip member."""
    found: list[tuple[Path, str | None]] = []
    files = sorted(path for path in raw.rglob("*") if path.is_file())
    kinds: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        kinds.setdefault((path.parent, path.suffix), []).append(path)
    for (_, suffix), paths in kinds.items():
        few = paths if len(paths) < 6 else paths[:1]
        found += [(path, None) for path in few]
        for path in few if suffix == ".zip" else []:
            members: dict[str, str] = {}
            for name in zipfile.ZipFile(path).namelist():
                if not name.endswith("/"):
                    members.setdefault(name if name.endswith(TABLES) and "/" not in name else Path(name).suffix, name)
            found += [(path, member) for member in members.values()]
    return found


def _damage(path: Path, member: str | None, way: str) -> None:
    content = path.read_bytes()
    path.unlink()  # it may be linked
    content = _with_damaged_member(content, member, way) if member is not None else WAYS[way](content)
    if content is not None:
        path.write_bytes(content)


def _with_damaged_member(archive: bytes, damaged: str, way: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == damaged:
                content = WAYS[way](content)
            if content is not None:
                target.writestr(name, content)
    return made.getvalue()


def _sample(raw: Path, id: str) -> list[tuple[Path, str | None, str]]:
    every = [(path, member, way) for path, member in _damageable(raw) for way in WAYS]
    return random.Random(id).sample(every, min(DAMAGES, len(every)))


@pytest.mark.timeout(300 + 60 * DAMAGES)
def test_no_damage_looks_like_a_bug(competition_id: str, tmp_path: Path) -> None:
    whole = TwinSource().fetch(Registry(tmp_path / "twin").get_competition(competition_id))
    for path, member, way in _sample(whole, competition_id):
        # As in a data directory: beside a twin's raw files it says which sizes stand for those of the real data.
        raw = tmp_path / "damaged" / "raw"
        shutil.copytree(whole, raw, copy_function=os.link)
        shutil.copy(whole.parent / "twin.json", raw.parent)
        for beside in whole.parent.glob("*.*"):
            shutil.copy(beside, raw.parent)
        damaged = raw / path.relative_to(whole)
        _damage(damaged, member, way)
        registry = Registry(tmp_path / "data")
        (outcome,) = prepare_many(registry, [competition_id], PathSource(raw), Options(verify=False))
        what = f"{damaged.name} {member or ''} {way}"
        assert outcome.status in ("prepared", "failed"), f"{what}: {outcome.reason}"
        if outcome.status == "failed":
            assert "\n" not in outcome.reason.strip(), what
            assert re.search("again|do not trust|get it from", outcome.reason), f"{what}: {outcome.reason}"
            assert "prepared.staging" not in outcome.reason, f"{what}: {outcome.reason}"
        shutil.rmtree(tmp_path / "damaged")
        shutil.rmtree(tmp_path / "data", ignore_errors=True)


def _prepared(raw: Path, data_dir: Path, id: str = "spaceship-titanic") -> PrepareOutcome:
    (outcome,) = prepare_many(Registry(data_dir), [id], PathSource(raw), Options(verify=False))
    return outcome


@pytest.fixture
def titanic(tmp_path: Path) -> Path:
    return shutil.copytree(
        TwinSource().fetch(Registry(tmp_path / "twin").get_competition("spaceship-titanic")), tmp_path / "raw"
    )


def test_the_error_names_the_file_and_what_is_wrong(titanic: Path, tmp_path: Path) -> None:
    table = titanic / "train.csv"
    content = table.read_bytes()
    for damaged, fault in {
        b"": "cannot be read (No columns to parse from file); get the complete data again",
        content.replace(b"PassengerId", b"Passenger", 1): "has no column 'PassengerId'; did you mean Passenger?",
        content.decode().encode("utf-16"): "cannot be read ('utf-8' codec can't decode byte 0xff",
    }.items():
        table.write_bytes(damaged)
        outcome = _prepared(titanic, tmp_path / "data")
        assert outcome.status == "failed"
        assert outcome.reason.startswith(f"spaceship-titanic: {table} {fault}"), outcome.reason


def test_late_damage_is_distinguished_from_a_bug_by_trying_the_twin(
    titanic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("mlebench.competitions.spaceship-titanic.prepare")
    works = module.prepare

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        _ = {"True": 1, "False": 0}[raw.lines("train.csv")[1].rpartition(",")[2]]
        works(raw, public, private)

    monkeypatch.setattr(module, "prepare", accepts_paths(prepare))
    assert _prepared(titanic, tmp_path / "a").status == "prepared"
    table = titanic / "train.csv"
    table.write_bytes(table.read_bytes().replace(b"True\n", b"yes\n").replace(b"False\n", b"no\n"))
    outcome = _prepared(titanic, tmp_path / "b")
    assert outcome.status == "failed"
    assert re.match(
        r"spaceship-titanic: its raw data cannot be prepared \(KeyError: '(yes|no)'.*"
        rf"The last raw files that were read: {table}\. The same code works on synthetic data.*get it again$",
        outcome.reason,
    ), outcome.reason


@pytest.mark.parametrize("error", [KeyError, ValueError, NameError])
def test_a_bug_keeps_its_traceback(
    error: type[Exception], titanic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(raw: Raw, public: Output, private: Output) -> None:
        raw.table("train.csv")
        if error is not NameError or "twin" not in str(raw.file("train.csv").tree.label):
            raise error("typo")

    monkeypatch.setattr("mlebench.competitions.spaceship-titanic.prepare.prepare", accepts_paths(prepare))
    outcome = _prepared(titanic, tmp_path / "data")
    assert outcome.status == "bug"
    assert "Traceback" in outcome.reason
    assert f"The last raw files that were read: {titanic}/train.csv" in outcome.reason


def test_published_data_is_never_to_blame(titanic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = Registry(tmp_path / "data").get_competition("spaceship-titanic")
    competition.paths.root.mkdir(parents=True)
    archive = Path(shutil.make_archive(str(competition.paths.archive.with_suffix("")), "zip", titanic))
    (tmp_path / "sums.yaml").write_text(f"zip: {md5_of(archive)}\n")
    object.__setattr__(competition, "checksums", tmp_path / "sums.yaml")
    module = importlib.import_module("mlebench.competitions.spaceship-titanic.prepare")
    works = module.prepare

    def prepare_only_twins(raw: Raw, public: Output, private: Output) -> None:
        if "data" in raw.file("train.csv").tree.label:
            raise KeyError("an id")
        works(raw, public, private)

    monkeypatch.setattr(module, "prepare", accepts_paths(prepare_only_twins))
    with pytest.raises(KeyError, match="an id"):
        prepare(competition)
    with pytest.raises(PrerequisiteError, match="works on synthetic data"):
        prepare(competition, options=Options(verify=False))


def test_faults_inside_archives_name_the_archives(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as inner:
        inner.writestr("a.csv", "id\n1\n")
    damaged = made.getvalue().replace(b"id\n1\n", b"id\n2\n")
    bad_7z = seven_zip_bytes({"a.csv": b"id\n1\n"})[:-3]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train.zip").write_bytes(
        zip_bytes({"inner.zip": damaged, "inner.7z": bad_7z, "deep.zip": zip_bytes({"x/inner.zip": damaged})})
    )
    (tmp_path / "raw/plain.zip").write_bytes(damaged)
    outer = f"{tmp_path}/raw/train.zip: "
    with open_raw(tmp_path / "raw") as raw:
        train = raw.archive("train.zip")
        for read, what in (
            (lambda: raw.archive("plain.zip").table("a.csv"), f"{tmp_path}/raw/plain.zip: a.csv cannot be read"),
            (lambda: train.archive("inner.zip").table("a.csv"), f"{outer}inner.zip/a.csv cannot be read"),
            (lambda: train.archive("inner.7z"), f"{outer}inner.7z cannot be read"),
            (lambda: train.archive("inner.zip").table("b.csv"), f"lacks b.csv (looked in {outer}inner.zip)"),
            (
                lambda: train.archive("deep.zip").archive("x/inner.zip").table("a.csv"),
                f"{outer}deep.zip/x/inner.zip/a.csv",
            ),
        ):
            with pytest.raises(PrerequisiteError, match=re.escape(what)):
                read()


@pytest.mark.parametrize("name", ["../out.csv", "/tmp/out.csv", "a/../../out.csv", "", "a//b", "."])
def test_a_twin_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    folder = TwinFolder(tmp_path / "raw")
    for write in (lambda: folder.write(name, b""), lambda: folder.write_zip(name, {})):
        with pytest.raises(ValueError, match="is not a name inside its folder"):
            write()
    assert list(tmp_path.iterdir()) == []
