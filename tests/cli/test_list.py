"""`list`: narrow enough for a terminal, complete despite broken folders; and suggestions for misspelled commands."""

import json
from importlib import import_module
from pathlib import Path

import click
import pytest

from mlebench.cli import main
from mlebench.cli.invocation import VerbGroup
from mlebench.cli.verbs import ALSO_CALLED, VERBS
from mlebench.contract.new_competition import new_competition
from mlebench.registry import Competition, Registry

Captured = pytest.CaptureFixture[str]


def ran(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, error = capsys.readouterr()
    return int(end.value.code or 0), out, error


def test_list_fits_a_terminal_and_shows_sizes(titanic: Competition, capsys: Captured) -> None:
    code, out, _ = ran(capsys, "list", "--data-dir", str(titanic.paths.data_dir))
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert max(map(len, out.splitlines())) <= 80
    assert rows["aptos2019-blindness-detection"] == ["low", "no", "10.2", "GB"]
    assert rows["AI4Code"] == ["medium", "no", "-"]
    assert rows["spaceship-titanic"][:2] == ["dev", "yes"]
    assert rows["spaceship-titanic"][3] == "kB"
    assert len(rows) == len(Registry().list_competition_ids()) + 1


def test_wide_list_has_every_column(capsys: Captured) -> None:
    _, out, _ = ran(capsys, "list", "--wide", "--split", "dev")
    header = [name.strip() for name in out.splitlines()[0].split("  ") if name]
    assert header == ["id", "category", "complexity", "metric", "higher is better", "prepared", "size"]


def test_json_has_the_keys_that_programs_know(capsys: Captured) -> None:
    _, out, _ = ran(capsys, "list", "--json", "--split", "dev")
    keys = ["id", "category", "complexity", "metric", "higher_is_better", "prepared"]
    assert all(list(row) == keys for row in json.loads(out))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("config.yaml", "id: [", "is not YAML"),
        ("config.yaml", "id: river-fish\n", "`grader` is missing"),
        ("description.md", "", "is empty"),
    ],
)
@pytest.mark.parametrize("profile", ["v1", "v2"])
def test_one_broken_folder_does_not_hide_the_others(
    file: str, text: str, reason: str, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for id in ("lake-fish", "river-fish"):
        config = new_competition(tmp_path / "own" / id) / "config.yaml"
        config.write_text(config.read_text() + "v2: {}\n")
    text += "v2: {}\n" * (text.startswith("id: river"))
    (tmp_path / "own" / "river-fish" / file).write_text(text)
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    code, out, err = ran(capsys, "list", "--profile", profile)
    assert code == 1
    assert "lake-fish" in out
    assert "river-fish" not in out
    (line,) = err.splitlines()
    assert line.startswith("river-fish is left out: ")
    assert reason in line
    assert len(json.loads(ran(capsys, "list", "--json", "--profile", profile)[1])) == len(out.splitlines()) - 1


def test_a_bad_search_path_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    own, empty = new_competition(tmp_path / "own" / "river-fish"), tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", f"{tmp_path / 'own'}:{empty}:{tmp_path / 'nowhere'}:{own}")
    code, out, err = ran(capsys, "list")
    assert code == 0
    assert "river-fish" in out
    faults = [
        f"{empty} holds no competition: none of its folders has a config.yaml",
        f"{tmp_path / 'nowhere'} does not exist",
        f"{own} is a competition's own folder; name the folder that contains it, {tmp_path / 'own'}",
    ]
    assert err.splitlines() == [f"search path: {fault}" for fault in faults]
    _, out, _ = ran(capsys, "doctor")
    assert all(
        any(line.startswith("bad   search path") and fault in line for line in out.splitlines()) for fault in faults
    )


@pytest.mark.parametrize(
    ("verb", "meant"),
    [("prepar", "prepare"), ("Verify", "verify"), ("grade_sample", "grade-sample"), *ALSO_CALLED.items()],
)
def test_near_verbs_are_suggested(verb: str, meant: str, capsys: Captured) -> None:
    assert meant in VERBS
    assert ran(capsys, verb) == (2, "", f"Error: there is no command {verb!r}; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("group", "word", "hint"),
    [
        ("agents", "instal", "did you mean install?"),
        ("bundle", "mak", "did you mean make?"),
        ("dev", "scripted_model", "did you mean scripted-model?"),
        ("image", "bild", "did you mean build?"),
        ("inspect", "plagarism", "did you mean plagiarism?"),
        ("runs", "ls", "did you mean list?"),
        ("runs", "xyz", "choose from cancel, list, show, submission"),
    ],
)
def test_near_commands_of_a_verb_are_suggested(group: str, word: str, hint: str, capsys: Captured) -> None:
    code, out, err = ran(capsys, group, word)
    assert (code, out) == (2, "")
    assert err.startswith(f"Error: there is no command {word!r}; {hint}")
    assert err.endswith(f" See `mlebench {group} --help`.\n")


def test_every_verb_with_commands_suggests_them() -> None:
    commands = [import_module(f"mlebench.cli.{verb.replace('-', '_')}").command for verb in VERBS]
    groups = [command for command in commands if isinstance(command, click.Group)]
    assert len(groups) >= 6
    assert all(isinstance(command, VerbGroup) for command in groups)


def test_near_options_are_suggested(capsys: Captured) -> None:
    code, _, err = ran(capsys, "list", "--splitt", "dev")
    assert code == 2
    assert "Did you mean" in err
    assert "--split" in err.partition("Did you mean")[2]
