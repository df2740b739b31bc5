"""Damaged raw data is for the person at the keyboard to mend: no damage looks like a bug of ours.

MLEBENCH_DAMAGES says how many kinds of damage are tried on each competition; each time they are the same.
"""

import io
import os
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.data.batch import prepare_many
from mlebench.data.pipeline import Options
from mlebench.data.sources import PathSource, TwinSource
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
    """Tables, records and archives, and tables inside zips; of files without number some. A file, and a member of it."""
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
    if member is not None:
        content = _with_damaged_member(content, member, way)
    else:
        content = WAYS[way](content)
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


def test_no_damage_looks_like_a_bug(competition_id: str, tmp_path: Path) -> None:
    whole = TwinSource().fetch(Registry(tmp_path / "twin").get_competition(competition_id))
    for path, member, way in _sample(whole, competition_id):
        # As a data directory's: beside a twin's raw files it says which sizes stand for those of the real data.
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
            assert "again" in outcome.reason, f"{what}: {outcome.reason}"
            assert "prepared.staging" not in outcome.reason, f"{what}: {outcome.reason}"
        shutil.rmtree(tmp_path / "damaged")
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
