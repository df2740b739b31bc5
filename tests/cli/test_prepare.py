"""mlebench prepare, as a person at a terminal and a script meet it."""

import json
import os
import pty
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlebench.data.sources import TwinSource
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
    assert "are free in" in done.stderr
    assert sorted(path.name for path in data.iterdir()) == [TITANIC]


def test_several_at_once_end_with_a_count(tmp_path: Path) -> None:
    done = run("prepare", "-c", TITANIC, "-c", NOMAD, "--twin", "--jobs", 2, "--data-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"{NOMAD}: prepared" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("2 of 2 are prepared in")


def test_verify_lists_what_differs(tmp_path: Path) -> None:
    run("prepare", "-c", TITANIC, "--twin", "--data-dir", tmp_path)
    done = run("verify", "--data-dir", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{TITANIC}: as it should be" in done.stderr
    (tmp_path / TITANIC / "prepared/public/extra.csv").touch()
    done = run("verify", TITANIC, "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "public/extra.csv" in done.stdout


def test_the_original_description_is_stored_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlebench.data.pipeline import Options, prepare

    monkeypatch.setattr("mlebench.data.kaggle.original_description", lambda competition: "their words")
    competition = Registry(tmp_path).get_competition(TITANIC)
    prepare(competition, TwinSource(), Options(original_description=True))
    assert (competition.public_dir / "description.md").read_text() == "their words"


def _on_a_terminal(*arguments: object) -> bytes:
    """What a person sees on stderr."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "mlebench", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # how Linux reports that the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert process.wait() == 0
    return seen


def test_a_terminal_sees_progress_and_a_script_does_not(tmp_path: Path) -> None:
    preparing = ["prepare", "-c", NOMAD, "--twin", "--size", "3"]
    seen = _on_a_terminal(*preparing, "--data-dir", tmp_path / "a")
    assert f"{NOMAD}: preparing".encode() in seen
    assert b"\x1b[" in seen
    assert "\x1b" not in run(*preparing, "--data-dir", tmp_path / "b").stderr
    for verb, what in {"grade-sample": b"grading", "validate": b"checking"}.items():
        arguments = [verb, tmp_path / "a" / NOMAD / "prepared/public/sample_submission.csv", NOMAD]
        assert what in _on_a_terminal(*arguments, "--data-dir", tmp_path / "a")
        assert run(*arguments, "--data-dir", tmp_path / "a").stderr == ""
