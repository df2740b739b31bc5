"""`prepare --force`, and what is said about data that is no longer what `prepare` would make."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.folders import contents

import mlebench.engine.output.folder_plan
from mlebench.cli.prepare import command as prepare_command
from mlebench.cli.verify import command as verify_command
from mlebench.core.errors import NotPreparedError, PrerequisiteError
from mlebench.data.open_runs import mark_open, unmark_open
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.data.state import require_prepared
from mlebench.data.verification import changes, code_hash, command_to_prepare_again
from mlebench.registry import Competition, Registry

ID = "spaceship-titanic"
FORCE = Options(force=True)


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    found = Registry(tmp_path / "data").get_competition(ID)
    prepare(found, TwinSource(seed=3))
    return found


def test_a_forced_prepare_remakes_the_twin_and_the_data(competition: Competition) -> None:
    before = contents(competition.paths.prepared)
    raw = competition.raw_dir / "train.csv"
    raw.chmod(0o644)
    raw.write_text("made by older code")
    competition.answers.unlink()
    assert prepare(competition, TwinSource(seed=3), FORCE)
    assert contents(competition.paths.prepared) == before
    assert prepare(competition, TwinSource(seed=3), FORCE)


@pytest.mark.parametrize("stage", ["create", "rename"])
def test_a_failed_forced_prepare_leaves_the_data_unchanged(
    competition: Competition, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """While files are written, and between renaming the old data and putting the new data in its place."""
    before = contents(competition.paths.prepared)

    def fail(self: Path, *_: object) -> Path:
        raise KeyboardInterrupt

    rename = Path.rename
    if stage == "create":
        monkeypatch.setattr(mlebench.engine.output.folder_plan.FolderPlan, "create", fail)
    else:
        staging = competition.paths.staging
        monkeypatch.setattr(Path, "rename", lambda path, to: fail(path) if path == staging else rename(path, to))
    with pytest.raises(KeyboardInterrupt):
        prepare(competition, TwinSource(seed=3), FORCE)
    monkeypatch.undo()
    assert not prepare(competition, TwinSource(seed=3)), "nothing has to be made again"
    assert contents(competition.paths.prepared) == before


def test_data_that_a_run_uses_is_not_replaced(competition: Competition, tmp_path: Path) -> None:
    before = contents(competition.paths.prepared)
    mark_open(competition, tmp_path, "token")
    with pytest.raises(PrerequisiteError, match="a run uses this data, so preparing it again has to wait"):
        prepare(competition, TwinSource(seed=3), FORCE)
    assert contents(competition.paths.prepared) == before
    unmark_open(competition, "token")
    assert prepare(competition, TwinSource(seed=3), FORCE)


def test_data_that_a_run_began_to_use_meanwhile_is_not_replaced(
    competition: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = mlebench.engine.output.folder_plan.FolderPlan.create

    def begin_a_run(self: mlebench.engine.output.folder_plan.FolderPlan, name: str) -> object:
        mark_open(competition, tmp_path, "token")
        return create(self, name)

    before = competition.paths.manifest.stat().st_ino
    monkeypatch.setattr(mlebench.engine.output.folder_plan.FolderPlan, "create", begin_a_run)
    with pytest.raises(PrerequisiteError, match="has to wait"):
        prepare(competition, TwinSource(seed=3), FORCE)
    assert competition.paths.manifest.stat().st_ino == before


def test_data_of_another_program_is_not_replaced(competition: Competition) -> None:
    competition.paths.manifest.unlink()
    with pytest.raises(PrerequisiteError, match="was not made by this program"):
        prepare(competition, TwinSource(seed=3), FORCE)


def _other_code(competition: Competition) -> None:
    manifest = json.loads(competition.paths.manifest.read_text())
    competition.paths.manifest.write_text(json.dumps(manifest | {"code": "0" * 64}))


def _other_description(competition: Competition) -> None:
    path = competition.public_dir / "description.md"
    text = path.read_text(encoding="utf-8")
    path.unlink()
    path.write_text(text.swapcase(), encoding="utf-8")


CHANGES: list[tuple[Callable[[Competition], None], str]] = [
    (_other_code, "the competition's code has changed since"),
    (_other_description, "description.md is not the competition's description"),
    (
        lambda competition: (competition.public_dir / "test.csv").unlink(),
        "1 of 5 files are missing or have another size",
    ),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_prepare_and_verify_say_what_has_changed_and_name_the_command(
    competition: Competition, change: Callable[[Competition], None], words: str
) -> None:
    where = ["--data-dir", str(competition.paths.data_dir)]
    twin = ["-c", ID, "--twin", "--seed", "3", *where]
    assert changes(competition) == []
    assert CliRunner().invoke(verify_command, [ID, *where]).stderr == f"{ID}: ok\n"
    change(competition)
    said = CliRunner().invoke(prepare_command, twin).stderr
    assert f"{ID}: already prepared: but {words}; " in said
    verified = CliRunner().invoke(verify_command, [ID, *where]).stderr
    command = f"mlebench prepare -c {ID} --twin --force --seed 3 --data-dir {competition.paths.data_dir}"
    for told in (said, verified):
        assert re.findall("`(.*)` prepares it again", told) == [command]
    assert CliRunner().invoke(prepare_command, command.split()[2:]).exit_code == 0
    assert changes(competition) == []


def test_raw_data_that_lies_elsewhere_has_to_be_named_again(competition: Competition, tmp_path: Path) -> None:
    real = Registry(tmp_path / "real").get_competition(ID)
    assert prepare(real, PathSource(competition.raw_dir), Options(verify=False))
    assert " --force --from PATH_OF_RAW_DATA --data-dir " in command_to_prepare_again(real)
    shutil.copytree(competition.raw_dir, real.raw_dir)
    assert "--from" not in command_to_prepare_again(real)


def test_changes_to_grader_or_twin_code_do_not_make_real_data_outdated(
    competition: Competition, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("prepare.py", "grade.py", "twin.py", "v2.py"):
        (folder / name).write_text("1")
    own = replace(competition, leaderboard=folder / "leaderboard.csv")
    real, twin = code_hash(own, twin=False), code_hash(own, twin=True)
    for name in ("grade.py", "v2.py"):
        (folder / name).write_text("2")
    assert (code_hash(own, twin=False), code_hash(own, twin=True)) == (real, twin)
    (folder / "twin.py").write_text("2")
    assert code_hash(own, twin=False) == real
    assert code_hash(own, twin=True) != twin
    (folder / "prepare.py").write_text("2")
    assert code_hash(own, twin=False) != real


def test_advice_fits_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MLEBENCH_DATA_DIR", raising=False)
    monkeypatch.setenv("MLEBENCH_CONFIG", str(tmp_path / "none.toml"))

    def advice(registry: Registry, id: str = ID, *, for_run: bool = False) -> str:
        with pytest.raises(NotPreparedError) as told:
            require_prepared(registry.get_competition(id), for_run=for_run)
        return str(told.value)

    make_one = f"Without Kaggle's data, try a twin: `mlebench prepare -c {ID} --twin`."
    assert advice(Registry()).endswith(f"Run `mlebench prepare -c {ID}` first. {make_one}")
    assert advice(Registry(), for_run=True).endswith("Without Kaggle's data, add `--twin`: it runs on synthetic data.")
    assert advice(Registry(tmp_path / "elsewhere"), for_run=True).endswith(make_one)
    twins = tmp_path / "cache" / "mle-bench" / "twins"
    prepare(Registry(twins).get_competition(ID), TwinSource())
    there = f"A twin of it is in {twins}: `--data-dir {twins}`."
    assert advice(Registry()).endswith(f"Run `mlebench prepare -c {ID}` first. {there}")
    other = "random-acts-of-pizza"
    assert advice(Registry(twins), other).endswith(f"Run `mlebench prepare -c {other} --twin` first.")
    assert command_to_prepare_again(Registry(twins).get_competition(ID)) == f"mlebench prepare -c {ID} --twin --force"
