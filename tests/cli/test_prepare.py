"""mlebench prepare, as a person at a terminal and a script see it."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.waiting import read_terminal

from mlebench.cli.invocation import run_verb
from mlebench.cli.prepare import command
from mlebench.core.errors import PrerequisiteError, UnknownCompetitionError
from mlebench.data.batch import PrepareOutcome
from mlebench.data.sources import TwinSource
from mlebench.description import submission_rules
from mlebench.registry import Registry

TITANIC, NOMAD = "spaceship-titanic", "nomad2018-predict-transparent-conductors"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mlebench", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    twin = Registry(tmp_path / "twin").get_competition(TITANIC)
    return shutil.copytree(TwinSource().fetch(twin), tmp_path / "raw")


def test_from_an_archive_elsewhere(raw: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "any.zip", "w") as archive:
        for path in raw.iterdir():
            archive.write(path, path.name)
    data = tmp_path / "data"
    done = run("prepare", "-c", TITANIC, "--from", tmp_path / "any.zip", "--data-dir", data)
    assert done.returncode == 1
    assert "is not the published archive" in done.stderr
    done = run("prepare", "-c", TITANIC, "--from", tmp_path / "any.zip", "--skip-verification", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert json.loads((data / TITANIC / "prepared/manifest.json").read_text())["source"] == {"kind": "local"}


def test_check_shows_what_is_there_and_touches_nothing(raw: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(raw, data / TITANIC / "raw")
    done = run("prepare", "-c", TITANIC, "-c", NOMAD, "--check", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    header, titanic, nomad = done.stdout.splitlines()
    assert header.split("  ")[0] == "competition"
    assert titanic.split()[:3] == [TITANIC, "raw", "-"]
    assert nomad.split()[:3] == [NOMAD, "none", "unknown"]
    assert "no login to Kaggle" in nomad
    assert " free in " in done.stderr
    assert sorted(path.name for path in data.iterdir()) == [TITANIC]


def test_a_check_of_many_gives_the_same_advice_once(tmp_path: Path) -> None:
    done = run("prepare", "--split", "dev", "--check", "--data-dir", tmp_path)
    _, *rows, advice = done.stdout.splitlines()
    assert len(rows) == 7
    assert all(row.endswith("see (1)") for row in rows)
    assert advice.startswith("(1) no login to Kaggle")


def test_an_unknown_id_does_not_stop_a_check_of_many(raw: Path, tmp_path: Path) -> None:
    done = run("prepare", "-c", "no-such-one", "-c", TITANIC, "--from", raw, "--check", "--data-dir", tmp_path / "data")
    assert done.returncode == 2
    assert done.stdout.splitlines()[1].split()[:2] == [TITANIC, "raw"]
    assert "there is no competition 'no-such-one'" in done.stderr


def test_several_at_once_end_with_a_table_of_all_and_a_count(tmp_path: Path) -> None:
    wanted = [word for id in (TITANIC, "no-such-one", NOMAD) for word in ("-c", id)]
    done = run("prepare", *wanted, "--twin", "--jobs", 2, "--data-dir", tmp_path)
    assert done.returncode == 1
    header, titanic, unknown, nomad = (re.split("  +", line) for line in done.stdout.splitlines())
    assert header == ["competition", "status", "reason"]
    assert titanic == [TITANIC, "prepared", "-"]
    assert unknown[:2] == ["no-such-one", "failed"]
    assert unknown[2].startswith("there is no competition 'no-such-one'")
    assert nomad == [NOMAD, "prepared", "-"]
    for line in (f"{NOMAD}: prepared", "no-such-one: failed: there is no competition"):
        assert f"\n{line}" in f"\n{done.stderr}"
    assert len(re.findall(rf"^\[.*\] {NOMAD}: ", done.stderr, re.MULTILINE)) == 1  # its beginning
    assert done.stderr.splitlines()[-1].startswith("2 of 3 prepared in")


def test_what_all_lack_is_said_once_and_the_rest_is_prepared(raw: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(raw, data / TITANIC / "raw")
    done = run("prepare", "--split", "dev", "-c", TITANIC, "--skip-verification", "--data-dir", data)
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert said[0].startswith("6 of 7 competitions cannot be prepared: no login to Kaggle was found: make an API token")
    assert f"{data}/ID/ID.zip" in said[0]
    assert done.stderr.count("no login to Kaggle") == 1
    assert f"{TITANIC}: prepared" in said, "it has its data"
    rows = {row[0]: row[1:] for row in (re.split("  +", line) for line in done.stdout.splitlines()[1:])}
    assert len(rows) == 7
    assert rows.pop(TITANIC) == ["prepared", "-"]
    assert {tuple(row) for row in rows.values()} == {("failed", "no login to Kaggle was found")}
    assert said[-1].startswith("1 of 7 prepared in")
    again = run("prepare", "-c", TITANIC, "-c", NOMAD, "--data-dir", data)
    assert f"{TITANIC}: already prepared" in again.stderr
    assert "\n" not in again.stderr.partition("competitions cannot be prepared")[0]


@pytest.mark.parametrize("synthetic", [True, False])
def test_a_data_directory_that_cannot_be_written_to_is_named_once(tmp_path: Path, synthetic: bool) -> None:
    (tmp_path / "file").touch()
    source = ["--twin"] if synthetic else ["--from", tmp_path]
    done = run("prepare", "-c", TITANIC, "-c", NOMAD, *source, "--data-dir", tmp_path / "file/data")
    assert done.returncode == 1
    fault = f"cannot write to {tmp_path / 'file/data'}"
    assert done.stderr.startswith(f"2 of 2 competitions cannot be prepared: {fault}")
    assert done.stderr.count("cannot write to") == 1
    assert [line.split("  ")[-1] for line in done.stdout.splitlines()[1:]] == [fault] * 2


def test_a_client_of_kaggle_that_does_not_work_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "kaggle").mkdir()
    (tmp_path / "kaggle/__init__.py").write_text("raise ImportError('it is broken')")
    command = [sys.executable, "-m", "mlebench", "prepare", "-c", TITANIC, "-c", NOMAD, "--data-dir", tmp_path / "data"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "KAGGLE_API_TOKEN": "x"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("2 of 2 competitions cannot be prepared: the `kaggle` package does not work")
    assert done.stderr.count("it is broken") == 1


def test_a_bug_is_a_traceback_and_in_the_table_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    traced = "Traceback (most recent call last):\n  File ...\nKeyError: 'Id'\n"
    outcomes = [
        PrepareOutcome(TITANIC, "prepared"),
        PrepareOutcome(NOMAD, "bug", traced),
    ]  # separate processes do not see the patch
    monkeypatch.setattr("mlebench.data.batch.prepare_many", lambda *_, **__: iter(outcomes))
    with pytest.raises(SystemExit) as end:
        command.main(["-c", TITANIC, "-c", NOMAD, "--twin", "--data-dir", str(tmp_path)])
    assert end.value.code == 1
    said = capsys.readouterr()
    assert re.search(rf"^{NOMAD} +bug +KeyError: 'Id'$", said.out, re.MULTILINE)
    assert f"{NOMAD}: bug: Traceback" in said.err


@pytest.mark.parametrize(("error", "code"), [(PrerequisiteError, 1), (UnknownCompetitionError, 2)])
def test_the_exit_code_goes_by_the_error_not_by_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[PrerequisiteError], code: int
) -> None:
    def prepare(*_: object) -> None:
        raise error("its leaderboard says that there is no competition and has no profile")

    monkeypatch.setattr("mlebench.data.batch.prepare", prepare)
    with pytest.raises(SystemExit) as end:
        run_verb(command, "prepare", ["-c", TITANIC, "--twin", "--data-dir", str(tmp_path)])
    assert end.value.code == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-c", TITANIC, "--from", ".", "--twin"], "--from and --twin contradict each other"),
        (["-c", TITANIC, "--twin", "--overwrite-checksums"], "--twin and --overwrite-checksums"),
        (["-c", TITANIC, "--check", "--overwrite-leaderboard"], "--check and --overwrite-leaderboard"),
        (["-c", TITANIC, "--size", "2"], "--size is for twins"),
        (["-c", TITANIC, "-c", NOMAD, "--from", "one.zip"], "one.zip is the archive of one competition, but 2 are"),
        (["--list", "empty.txt", "--twin"], "nothing to prepare: empty.txt names no competition"),
        (["--list", "latin.txt", "--twin"], "latin.txt is not UTF-8 text"),
    ],
)
def test_impossible_requests_are_refused_at_once(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.zip").touch()
    Path("empty.txt").write_text("\n# spaceship-titanic\n")
    Path("latin.txt").write_bytes("Müller".encode("latin-1"))
    done = CliRunner().invoke(command, [*arguments, "--data-dir", "data"])
    assert (done.exit_code, Path("data").exists()) == (2, False)
    assert words in done.stderr


def test_a_list_may_have_comments_and_name_a_competition_twice(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text(f"\ufeff# mine\n\n{TITANIC}  # small\n  {TITANIC}\r\n", encoding="utf-8")
    words = ["--list", str(tmp_path / "ids.txt"), "--twin", "--check"]
    done = CliRunner().invoke(command, [*words, "--data-dir", str(tmp_path)])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["competition", TITANIC]


def test_verify_lists_what_differs(tmp_path: Path) -> None:
    run("prepare", "-c", TITANIC, "--twin", "--data-dir", tmp_path)
    done = run("verify", "--data-dir", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{TITANIC}: ok" in done.stderr
    (tmp_path / TITANIC / "prepared/public/extra.csv").touch()
    done = run("verify", TITANIC, "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "public/extra.csv" in done.stdout


def test_the_original_description_is_stored_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlebench.data.pipeline import Options, prepare

    monkeypatch.setattr("mlebench.data.kaggle.original_description", lambda competition: "their words")
    texts = {}
    for profile in ("v1", "v2"):
        competition = Registry(tmp_path, profile).get_competition(TITANIC)
        prepare(competition, TwinSource(), Options(original_description=True))
        texts[profile] = (competition.public_dir / "description.md").read_text()
    assert texts == {"v1": "their words", "v2": f"their words\n\n{submission_rules(competition)}\n"}


def _on_a_terminal(*arguments: object) -> bytes:
    """What a person sees on stderr."""
    master, slave = pty.openpty()
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=environment)
    os.close(slave)
    try:
        seen = read_terminal(master, "the command has ended")
        assert process.wait(120) == 0
    finally:
        process.kill()
    return seen


def test_a_terminal_sees_progress_and_a_script_does_not(tmp_path: Path) -> None:
    preparing = ["prepare", "-c", NOMAD, "--twin", "--size", "3"]
    seen = _on_a_terminal("-m", "mlebench", *preparing, "--data-dir", tmp_path / "a")
    assert re.search(rb"nomad2018\S+ +preparing +0\.0 of \d+\.\d kB", seen)
    assert f"\x1b[2K{NOMAD}: prepared\r\n".encode() in seen
    assert "\x1b" not in run(*preparing, "--data-dir", tmp_path / "b").stderr
    for verb, what in {"grade-sample": b"grading", "validate": b"checking"}.items():
        arguments = [verb, tmp_path / "a" / NOMAD / "prepared/public/sample_submission.csv", NOMAD]
        assert what in _on_a_terminal("-m", "mlebench", *arguments, "--data-dir", tmp_path / "a")
        assert run(*arguments, "--data-dir", tmp_path / "a").stderr == ""


def test_other_output_appears_above_the_bars() -> None:
    program = """
        import click, logging
        from mlebench.cli.console import log_line
        from mlebench.cli.invocation import run_verb
        from mlebench.cli.console import watching

        @click.command()
        def command():
            with watching(["one", "two"]) as watch:
                watch["one"].tell("reading", 1, 2)
                logging.getLogger("mlebench.any").info("a log line")
                log_line("a line")

        run_verb(command, "any", [])
    """
    seen = _on_a_terminal("-c", textwrap.dedent(program))
    for line in (rb"\[\d\d:\d\d:\d\d\] a log line", b"a line"):  # each where a line has just been erased
        assert re.search(rb"\x1b\[2K" + line + rb"\r\n", seen)
