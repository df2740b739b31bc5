"""`mlebench inspect plagiarism`: runs against notebooks and against each other, whatever they left."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.programs import notebook, program, renamed
from support.records import write_record

from mlebench.cli.inspect import command as inspect
from mlebench.cli.inspect_plagiarism import side_by_side
from mlebench.core import paths
from mlebench.core.paths import GroupPaths
from mlebench.integrity.plagiarism import code_files
from mlebench.integrity.plagiarism.code_files import read_all
from mlebench.integrity.subjects import sources_below
from mlebench.records import now
from mlebench.records.group import GroupRecord
from mlebench.records.run import ENDED, RunRecord

ID, OTHER = "spaceship-titanic", "leaf-classification"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """24 notebooks and programs, by owner."""
    for number in range(24):
        code = program(f"notebook {number}")
        folder = tmp_path / "corpus" / f"owner{number}"
        folder.mkdir(parents=True)
        if number % 2:
            (folder / "work.py").write_text(code)
        else:
            (folder / "work.ipynb").write_text(notebook(["!pip install x", *_halves(code)]))
    return tmp_path / "corpus"


def _halves(code: str) -> list[str]:
    """Cut where a statement at the top level begins."""
    lines = code.splitlines(keepends=True)
    middle = next(at for at in range(len(lines) // 2, len(lines)) if not lines[at].startswith(" "))
    return ["".join(lines[:middle]), "".join(lines[middle:])]


def group(
    runs_dir: Path, agent: str, runs: Mapping[str, Mapping[str, str | bytes]], competition: str = ID
) -> GroupPaths:
    """A run group that has ended, and the code of each of its runs."""
    where = GroupPaths(runs_dir / f"2026-01-01_run-group_{agent}")
    where.root.mkdir(parents=True)
    write_record(
        where.record,
        GroupRecord,
        id=where.root.name,
        created_at=now(),
        agent={"name": agent},
        agent_source=agent,
        competitions=[competition],
        seeds=len(runs),
        data_dir=str(runs_dir.parent / "data"),
        profile="v1",
        twin=True,
        sandbox="process",
        limits={"seconds": 60},
    )
    for seed, (name, files) in enumerate(runs.items()):
        run = where.run(competition, name)
        run.root.mkdir()
        for path, content in files.items():
            (run.code / path).parent.mkdir(parents=True, exist_ok=True)
            (run.code / path).write_bytes(content.encode() if isinstance(content, str) else content)
        facts: dict[str, Any] = {"run_id": name, "competition": competition, "seed": seed, "planned_at": now()}
        write_record(run.record, RunRecord, **facts, state=ENDED, ended="finished")
    return where


def inspected(*arguments: str | Path) -> str:
    done = CliRunner().invoke(inspect, ["plagiarism", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def as_json(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    """The record of each run, by its name."""
    return {run["run"]: run for run in json.loads(inspected(*arguments, "--json"))["runs"]}


def test_a_copied_notebook_is_found_among_own_code(tmp_path: Path, corpus: Path) -> None:
    copied = renamed(program("notebook 4")) + program("own end", 5)
    runs = {
        "copy": {"utils.py": program("own"), "deep/main.py": copied},
        "own": {"main.ipynb": notebook([program("something else")])},
        "part": {"main.py": program("notebook 7")[: len(program("notebook 7")) // 3]},
    }
    where = group(tmp_path / "runs", "x", runs)
    found = as_json(where.root, "--corpus", corpus)
    record = found[f"{ID}_copy"]
    (closest, *_) = record["facts"]["notebooks"]
    assert (closest["name"], closest["file"]) == ("owner4/work.ipynb", "code/deep/main.py")
    assert closest["containment"] > 0.7
    assert closest["unusual"]
    assert closest["longest"] > 500
    (finding, *_) = record["findings"]
    assert (finding["kind"], finding["rule"]) == ("note", "shared-with-notebook")
    assert "Of 24 notebooks that are not copies, 0 share as much" in finding["says"]
    assert found[f"{ID}_own"]["findings"] == []
    part = found[f"{ID}_part"]["facts"]["notebooks"][0]
    assert part["name"] == "owner7/work.py"
    assert part["containment"] > 0.7 > part["similarity"]
    on_disk = json.loads(where.run(ID, "copy").finding("plagiarism").read_text())
    assert on_disk == {key: value for key, value in record.items() if key not in ("group", "run", "competition")}
    (passage, *_) = closest["passages"]
    assert passage["left"]["text"].split("\n")[1] in copied
    assert passage["right"]["cell"] in (3, 4)


def test_nobody_is_accused(tmp_path: Path, corpus: Path) -> None:
    where = group(tmp_path / "runs", "x", {"a": {"main.py": program("notebook 4")}})
    said = inspected(where.root, "--corpus", corpus, "--show") + where.run(ID, "a").finding("plagiarism").read_text()
    said = said.replace('"tool": "plagiarism"', "")
    assert "unusual" in said
    assert not [word for word in ("plagiar", "copied", "cheat", "stole", "theft") if word in said.lower()]


def test_the_table_and_the_passages(tmp_path: Path, corpus: Path) -> None:
    where = group(tmp_path / "runs", "x", {"a": {"main.py": program("notebook 4")}, "none": {}})
    table, *_ = inspected(where.root, "--corpus", corpus).split("\n\n")
    header, first, second = table.splitlines()
    assert header.split()[:3] == ["run", "competition", "file"]
    assert [f"{ID}_a", ID, "code/main.py", "owner4/work.ipynb"] == first.split()[:4]
    assert first.split()[-1] == "unusual"
    assert second.endswith("there is no code")
    shown = inspected(where.root, "--corpus", corpus, "--show")
    line = program("notebook 4").splitlines()[0]
    assert any(line[:30] in part and line[:30] in other for part, _, other in _columns(shown))


def _columns(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(" │ ") for line in text.splitlines() if " │ " in line]


def test_sides_keep_to_their_columns() -> None:
    side = {"file": "a.py", "cell": None, "line": 3, "lines": 9, "text": "x = 1\n" + "y" * 100}
    lines = list(side_by_side({"left": side, "right": side | {"cell": 2, "lines": 2}}, 63))
    assert lines[0] == f"{'a.py, line 3':<30} │ a.py, cell 2, line 3"
    assert {line.index("│") for line in lines} == {31}
    assert max(map(len, lines)) <= 63
    assert lines[-1].startswith("… and 7 more lines")
    assert sum(line.count("y") for line in lines[1:]) == 200


def test_runs_of_one_agent_are_expected_to_be_alike(tmp_path: Path, corpus: Path) -> None:
    runs_dir = tmp_path / "runs"
    one = group(runs_dir, "one", {"a": {"main.py": program("mine")}, "b": {"main.py": program("mine")}})
    two = group(runs_dir, "two", {"c": {"main.py": renamed(program("mine"))}, "d": {"main.py": program("else")}})
    found = as_json(one.root, two.root, "--corpus", corpus)
    first, second = found[f"{ID}_a"]["facts"]["runs"]
    assert (first["name"], first["agent"], first["unusual"]) == (f"{two.root.name}/{ID}_c", "another agent", True)
    assert (second["name"], second["agent"], second["unusual"]) == (f"{ID}_b", "the same agent", None)
    assert [one["rule"] for one in found[f"{ID}_a"]["findings"]] == ["shared-with-run"]
    assert found[f"{ID}_d"]["facts"]["runs"] == []
    table = inspected(one.root, two.root, "--corpus", corpus)
    assert "Runs of one agent are expected to be alike." in table
    assert any(line.endswith("expected") and "the same agent" in line for line in table.splitlines())


def test_runs_of_other_competitions_are_not_compared(tmp_path: Path, corpus: Path) -> None:
    one = group(tmp_path / "runs", "one", {"a": {"main.py": program("mine")}})
    two = group(tmp_path / "runs", "two", {"b": {"main.py": program("mine")}}, competition=OTHER)
    found = as_json(one.root, two.root, "--corpus", corpus)
    assert [run["facts"]["runs"] for run in found.values()] == [[], []]


def test_lines_of_the_reference(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(program("notebook 4"))
    (tmp_path / "single.py").write_text(program("notebook 4"))
    lines = [
        {"competition_id": ID, "code_path": "code"},
        {"competition_id": ID, "code_path": str(tmp_path / "single.py"), "logs_path": None},
        {"competition_id": ID, "code_path": "not there"},
        {"competition_id": ID, "submission_path": "x.csv"},
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = as_json(file, "--corpus", corpus)
    assert [len(run["facts"]["notebooks"]) > 0 for run in found.values()] == [True, True, False, False]
    assert found["line 3"]["facts"]["says"] == "there is no code"
    (other,) = found["line 1"]["facts"]["runs"]
    assert (other["name"], other["agent"], other["unusual"]) == ("line 2", "agent not known", None)


def test_few_notebooks_and_none(tmp_path: Path, corpus: Path) -> None:
    where = group(tmp_path / "runs", "x", {"a": {"main.py": program("notebook 4")}})
    few = tmp_path / "few"
    few.mkdir()
    (few / "b.ipynb").write_text(notebook([program("notebook 4")]))
    (few / "broken.ipynb").write_text("{")
    facts = as_json(where.root, "--corpus", few)[f"{ID}_a"]["facts"]
    assert (facts["threshold"], facts["notebooks"][0]["unusual"]) == (None, None)
    assert facts["notebooks"][0]["containment"] == 1
    assert "there are 1 notebooks that are long enough" in facts["threshold_says"]
    assert facts["corpus"]["unread"] == 1
    told = inspected(where.root)
    assert f"mlebench dev download-kernels -c {ID}" in told
    assert "not compared with notebooks" in told
    published = paths.kernels_dir(ID) / "owner"
    published.mkdir(parents=True)
    (published / "name.ipynb").write_text(notebook([program("notebook 4")]))
    assert as_json(where.root)[f"{ID}_a"]["facts"]["notebooks"][0]["name"] == "owner/name.ipynb"


def test_a_folder_without_code_is_refused(tmp_path: Path) -> None:
    where = group(tmp_path / "runs", "x", {"a": {"main.py": program("mine")}})
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(inspect, ["plagiarism", str(where.root), "--corpus", str(tmp_path / "empty")])
    assert "there is no code in" in str(done.exception)


def test_hostile_code_costs_little_and_hides_nothing(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, str | bytes] = {
        "main.py": program("notebook 4"),
        "deep.py": "x = " + "(" * 200_000 + ")" * 200_000,
        "chain.py": "x = 1" + " + 1" * 100_000,
        "binary.py": b"\0\1\2" * 1000,
        "broken.ipynb": '{"cells": [',
        "brackets.ipynb": "[" * 10**6,
        "\x1b[31mred.py": program("notebook 5"),
        "surrogate.py": b"x = '\xff\xfe'\n" * 100,
        "data.csv": "1,2\n",
    }
    where = group(tmp_path / "runs", "x", {"a": files})
    code = where.run(ID, "a").code
    (code / "huge.py").touch()
    os.truncate(code / "huge.py", 5 << 30)  # takes no room
    (code / "huge.ipynb").touch()
    os.truncate(code / "huge.ipynb", 5 << 30)
    (code / "link.py").symlink_to(corpus / "owner9" / "work.py")
    (code / "folder").symlink_to(corpus)
    os.mkfifo(code / "pipe.py")
    record = as_json(where.root, "--corpus", corpus)[f"{ID}_a"]
    facts = record["facts"]
    assert [one["name"] for one in facts["notebooks"][:2]] == ["owner4/work.ipynb", "owner5/work.py"]
    assert all("owner9" not in one["name"] for one in facts["notebooks"])
    unread = " ".join(facts["code"]["unread"])
    for name in ("binary.py is not text", "broken.ipynb is a broken", "brackets.ipynb is a broken", "huge.py is not"):
        assert f"code/{name}" in unread
    assert "\x1b" not in json.dumps(record).replace("\\u001b", "\x1b")
    assert where.run(ID, "a").finding("plagiarism").stat().st_size < 256 << 10


def test_a_parser_that_dies_loses_one_file(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is so short that one file of many cannot be parsed."""
    (corpus / "owner0" / "large.py").write_text("x = [" + "f()," * 250_000 + "]\n")
    monkeypatch.setattr(code_files, "MEMORY", 128 << 20)
    reads = {read.name: read.fault for read in read_all(sources_below(corpus))}
    assert "could not be parsed" in str(reads.pop("owner0/large.py"))
    assert set(reads.values()) == {None}


def test_fingerprints_are_kept_by_what_a_file_holds(tmp_path: Path, corpus: Path) -> None:
    first = {read.name: read.hashes.tolist() for read in read_all(sources_below(corpus), tmp_path / "cache")}
    kept = sorted((tmp_path / "cache").rglob("*.npy"))
    assert len(kept) == 24
    kept[0].write_bytes(b"damaged")
    (corpus / "owner1" / "work.py").write_text(program("new"))
    again = {read.name: read.hashes.tolist() for read in read_all(sources_below(corpus), tmp_path / "cache")}
    assert {name for name in first if first[name] != again[name]} == {"owner1/work.py"}
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 25
    assert not list((tmp_path / "cache").rglob("*.part*"))
    without = {read.name: read.hashes.tolist() for read in read_all(sources_below(corpus))}
    assert without == again
