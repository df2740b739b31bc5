"""`--knowledge` and `--weights`: what agents may read is there, is recorded, and never shows them answers."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench
from support.sandboxes import ALL, ISOLATING, require, sandbox_params

from mlebench.agents.folders import environment_dir
from mlebench.core.errors import PrerequisiteError
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run import shared_folders
from mlebench.run.shared_folders import KNOWLEDGE, SHARED_FOLDERS

Runner = Callable[..., Group]


@pytest.fixture
def books(tmp_path: Path) -> Path:
    folder = tmp_path / "books"
    (folder / "inner").mkdir(parents=True)
    (folder / "paper.txt").write_text("read me\n")
    (folder / "inner" / "again.txt").symlink_to("../paper.txt")
    (folder / "round").symlink_to("round")
    return folder


@pytest.mark.parametrize("name", [shared.name for shared in SHARED_FOLDERS])
@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_the_folder_is_there_and_is_mentioned(run: Runner, books: Path, sandbox: str, name: str) -> None:
    require(sandbox)
    program = f'cat ~/{name}/inner/again.txt; grep -o "$HOME/{name}/" $INSTRUCTIONS; touch ~/{name}/new'
    group = run(f"{program}; {SUBMIT}", f"--{name}", str(books), sandbox=sandbox)
    (ended,) = group.runs()
    first, second, *rest = ended.paths.log.read_text().splitlines()
    assert first == "read me"
    assert second.endswith(f"/{name}/")
    fields = {field: getattr(ended.record.conditions, field) for field in (name, f"{name}_sha256")}
    assert fields == {name: str(books), f"{name}_sha256": getattr(group.record, f"{name}_sha256")}
    assert ended.record.conditions.sealed == (sandbox in ISOLATING)
    if sandbox in ISOLATING:
        assert "Read-only file system" in rest[0]
        assert not (books / "new").exists()


@pytest.mark.parametrize("hub", ["hub", "."])
def test_libraries_are_led_to_weights_in_their_layout(run: Runner, tmp_path: Path, hub: str) -> None:
    require("bubblewrap")
    weights = tmp_path / "weights"
    snapshot = weights / hub / "models--org--tiny" / "snapshots" / "1f2e"
    snapshot.mkdir(parents=True)
    blob = snapshot.parents[1] / "blobs" / "0a1b"
    blob.parent.mkdir()
    blob.write_text("weights\n")
    (snapshot / "model.bin").symlink_to("../../blobs/0a1b")
    (weights / "hub" / "checkpoints").mkdir(parents=True, exist_ok=True)
    program = "cat $HF_HUB_CACHE/models--org--tiny/snapshots/*/model.bin; ls -d $TORCH_HOME/hub/checkpoints; "
    group = run(program + "echo $HF_HUB_OFFLINE $TRANSFORMERS_OFFLINE", "--weights", str(weights), sandbox="bubblewrap")
    (ended,) = group.runs()
    assert ended.paths.log.read_text().splitlines() == ["weights", "/home/weights/hub/checkpoints", "1 1"]


def test_a_plain_folder_of_weights_sets_no_variables(run: Runner, books: Path) -> None:
    group = run("env", "--weights", str(books))
    (ended,) = group.runs()
    assert not [line for line in ended.paths.log.read_text().splitlines() if line.startswith(("HF_", "TORCH", "TRANS"))]


def test_without_the_option_there_is_no_folder_and_no_mention(run: Runner) -> None:
    require("bubblewrap")
    group = run("ls -d /home/knowledge /home/weights; cat $INSTRUCTIONS", sandbox="bubblewrap")
    (ended,) = group.runs()
    *missing, text = ended.paths.log.read_text().split("\n", 2)
    assert all("No such file" in line for line in missing)
    assert text == (environment_dir() / "instructions.txt").read_text()
    assert ended.record.conditions.knowledge is None


def _link_out(folder: Path, competition: Competition) -> Path:
    (folder / "link").symlink_to(os.path.relpath(competition.private_dir, folder))
    return folder


def _link_elsewhere(folder: Path, _: Competition) -> Path:
    (folder / "inner" / "link").symlink_to(folder / "paper.txt")
    return folder


def _socket(folder: Path, _: Competition) -> Path:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "s"))
    return folder


def _copy_of_answers(folder: Path, competition: Competition) -> Path:
    (folder / "inner" / "notes.csv").write_bytes(competition.answers.read_bytes())
    return folder


def _other_data(folder: Path, _: Competition) -> Path:
    private = folder / "leaf-classification" / "prepared-v2" / "private"
    private.mkdir(parents=True)
    (private / "test.csv").touch()
    return private.parent


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link_out, "is a link that leads out of the folder"),
        (_link_elsewhere, "is a link that leads out of the folder"),
        (_socket, "is a socket"),
        (_copy_of_answers, "holds the answers of a competition"),
        (_other_data, "is private data"),
        (lambda _, competition: competition.private_dir, "is inside"),
        (lambda _, competition: competition.paths.data_dir.parent, "contains"),
        (lambda folder, _: folder.parent, "contains"),  # the runs directory is inside it
        (lambda _, competition: competition.folder, "is inside"),
        (lambda folder, _: folder / "paper.txt", "is not a folder"),
    ],
)
def test_what_agents_must_not_read_is_refused(
    titanic: Competition, books: Path, spoil: Callable[[Path, Competition], Path], words: str
) -> None:
    folder, runs = spoil(books, titanic), books.parent / "runs"
    runs.mkdir()
    with pytest.raises(PrerequisiteError, match=words):
        KNOWLEDGE.refuse(folder, [titanic.paths.data_dir, runs], [titanic])


def test_a_folder_reached_by_a_link_is_judged_by_its_real_path(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    (tmp_path / "innocent").symlink_to(titanic.private_dir)
    run = ["run", "--agent", "dummy", "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    done = mlebench(*run, "--knowledge", str(tmp_path / "innocent"), code=1)
    assert "which agents must not see" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_the_identity_depends_on_the_files(books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = KNOWLEDGE.identity(books)
    moved = books.rename(tmp_path / "elsewhere")
    os.utime(moved / "paper.txt", (0, 0))
    assert KNOWLEDGE.identity(moved) == first
    seen = {first}
    for change in (
        lambda: (moved / "paper.txt").write_text("read ME\n"),
        lambda: (moved / "paper.txt").rename(moved / "Paper.txt"),
        lambda: (moved / "more").touch(),
    ):
        change()
        seen.add(KNOWLEDGE.identity(moved))
    assert len(seen) == 4
    monkeypatch.setattr(shared_folders, "MOST_READ", 3)  # of larger files, the size
    large = KNOWLEDGE.identity(moved)
    (moved / "Paper.txt").write_text("no more\n")
    assert KNOWLEDGE.identity(moved) == large
    (moved / "Paper.txt").write_text("no more.\n")
    assert KNOWLEDGE.identity(moved) != large


def test_a_group_does_not_continue_with_changed_material(mlebench: Mlebench, run: Runner, books: Path) -> None:
    group = run("exit 1", "--knowledge", str(books))
    (books / "paper.txt").write_text("the answer is 42\n")
    said = mlebench("run", "--resume", str(group.paths.root), "--retry", "failed", code=1).stderr
    (one,) = group.runs()
    assert one.record.attempts[-1].ended == "infra_error"
    assert "has changed since these runs were planned" in said
    with pytest.raises(PrerequisiteError, match="has changed"):
        KNOWLEDGE.require_unchanged(group.record)


def test_like_reuses_the_folder_and_says_when_it_has_changed(mlebench: Mlebench, run: Runner, books: Path) -> None:
    group = run(SUBMIT, "--knowledge", str(books))
    like = ["run", "--like", str(group.paths.root), "--runs-dir", str(group.paths.root.parent)]
    assert "Warning: " not in mlebench(*like).stderr.replace("Warning: a plain process", "")
    (books / "more.txt").touch()
    assert "are not those that the earlier runs were given as --knowledge" in mlebench(*like).stderr
    records = [Group.read(path).record for path in sorted(group.paths.root.parent.iterdir())]
    assert [record.knowledge for record in records] == [str(books)] * 3
    assert len({record.knowledge_sha256 for record in records}) == 2


def test_standings_separate_it_and_show_it(mlebench: Mlebench, run: Runner, books: Path) -> None:
    without = run(SUBMIT)
    groups = [run(SUBMIT, "--knowledge", str(books))]
    books.rename(books.with_name("shelf"))
    groups.append(run(SUBMIT, "--knowledge", str(books.with_name("shelf"))))  # the same, in another place
    (books.with_name("shelf") / "more.txt").touch()
    groups.append(run(SUBMIT, "--knowledge", str(books.with_name("shelf"))))
    named = [str(group.paths.root) for group in (without, *groups)]
    entries = json.loads(mlebench("report", *named, "--format", "json").stdout)["entries"]
    assert [len(entry["runs"]) for entry in entries] == [1, 2, 1]
    assert [entry["conditions"]["knowledge"] is None for entry in entries] == [True, False, False]
    told = mlebench("report", *named)
    sums = [str(group.record.knowledge_sha256)[:12] for group in groups]
    labels = [entry["agent"].partition(", ")[2] for entry in entries]
    assert labels == ["no knowledge", f"knowledge books ({sums[0]})", f"knowledge shelf ({sums[2]})"]
    assert all(told.stdout.count(label) > 1 for label in labels)
    rules = mlebench("inspect", "rules", named[1], code=None)
    assert f"It was given material: books ({sums[0]})" in rules.stdout + rules.stderr
