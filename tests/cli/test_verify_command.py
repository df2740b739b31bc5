"""mlebench verify, as a person at a terminal and a script see it."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mlebench.cli.verify import command
from mlebench.core.errors import NotPreparedError, PrerequisiteError
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.registry import Competition, Registry

TITANIC = "spaceship-titanic"


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    competition = Registry(tmp_path / "data").get_competition(TITANIC)
    prepare(competition, TwinSource())
    return competition


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


@pytest.mark.parametrize("there", [True, False])
def test_if_nothing_is_prepared_it_says_so(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "typo" / TITANIC / "prepared/public").mkdir(parents=True)
    done = run("--deep", "--data-dir", tmp_path / "typo")
    assert isinstance(done.exception, PrerequisiteError)
    assert f"nothing is prepared in {tmp_path / 'typo'}" in str(done.exception)
    assert isinstance(run(TITANIC, "--data-dir", tmp_path / "typo").exception, NotPreparedError)


def test_where_nothing_is_prepared_it_says_where_twins_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    twins = tmp_path / "mle-bench/twins"
    assert "twins" not in str(run("--data-dir", tmp_path / "typo").exception)
    prepare(Registry(twins).get_competition(TITANIC), TwinSource())
    assert f"; twins are in {twins}" in str(run("--data-dir", tmp_path / "typo").exception)


def test_data_without_its_answers_is_not_skipped(competition: Competition) -> None:
    competition.answers.unlink()
    done = run("--data-dir", competition.paths.data_dir)
    assert done.exit_code == 1
    assert "is missing" in done.stdout


def test_a_file_counts_once_and_has_one_line_whatever_its_name(competition: Competition) -> None:
    (competition.public_dir / os.fsdecode(b"odd\xff\nname")).touch()
    done = run(TITANIC, TITANIC, "--data-dir", competition.paths.data_dir)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"{TITANIC}: 1 file differs; `mlebench prepare -c {TITANIC} --twin --force")
    _, *rows = done.stdout.splitlines()
    assert rows == [rf"{TITANIC}  'public/odd\udcff\nname'  is not on record"]
