"""Published notebooks from Kaggle: the real client, against a server on loopback."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.fake_kaggle import FakeKaggle, Fault
from support.kaggle_fixtures import Waits

from mlebench.cli.dev import command as dev
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import KERNELS, kernels_dir
from mlebench.data import kernels as module
from mlebench.data.kernels import DOWNLOADED, GONE, NOT_PYTHON, PRESENT, download_kernels, read_kernel_list
from mlebench.registry import Competition, Registry

ID = "spaceship-titanic"
NAMES = ["ada/first-look", "bob/gone", "bob/a_script", "eve/in-r", "zoe/last"]


def blob(kind: str = "notebook", language: str = "python", **more: str) -> dict[str, str]:
    return {"source": '{"cells": []}', "kernelType": kind, "language": language, "slug": "../../elsewhere", **more}


@pytest.fixture
def competition(tmp_path: Path, login: Path, kaggle: FakeKaggle, monkeypatch: pytest.MonkeyPatch) -> Competition:
    """A competition with its own list; downloads go below this test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kaggle.kernels = {
        "ada/first-look": blob(),
        "bob/a_script": blob("script", source="print('ä')\n"),
        "eve/in-r": blob(language="r"),
        "zoe/last": blob(),
    }
    folder = tmp_path / ID
    folder.mkdir()
    (folder / KERNELS).write_text("".join(f"{name}\n" for name in NAMES))
    return replace(Registry(tmp_path / "data").get_competition(ID), leaderboard=folder / "leaderboard.csv")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_lists_ship_with_the_competitions() -> None:
    registry = Registry()
    lists = {id: read_kernel_list(registry.get_competition(id)) for id in registry.list_competition_ids()}
    assert sum(map(len, lists.values())) == 3636
    assert sorted(id for id, names in lists.items() if not names) == [
        "multi-modal-gesture-recognition",
        "the-icml-2013-whale-challenge-right-whale-redux",
    ]
    assert all(module._NAME.fullmatch(name) for names in lists.values() for name in names)
    assert all(len(set(names)) == len(names) for names in lists.values())


def test_available_notebooks_are_downloaded(competition: Competition, kaggle: FakeKaggle) -> None:
    found = list(download_kernels(competition))
    assert [kernel.name for kernel in found] == NAMES
    assert [kernel.state for kernel in found] == [DOWNLOADED, GONE, DOWNLOADED, NOT_PYTHON, DOWNLOADED]
    folder = kernels_dir(ID)
    assert files(folder.parent) == [f"{ID}/ada/first-look.ipynb", f"{ID}/bob/a_script.py", f"{ID}/zoe/last.ipynb"]
    assert (folder / "bob" / "a_script.py").read_text(encoding="utf-8") == "print('ä')\n"
    assert {call.body["userName"] for call in kaggle.called("GetKernel")} == {"ada", "bob", "eve", "zoe"}


def test_a_second_attempt_asks_for_what_is_missing(competition: Competition, kaggle: FakeKaggle) -> None:
    kaggle.faults["GetKernel"] = [Fault(), Fault(), Fault(400, "stop here")]
    with pytest.raises(PrerequisiteError, match="stop here"):
        list(download_kernels(competition))
    assert files(kernels_dir(ID)) == ["ada/first-look.ipynb"]
    kaggle.calls.clear()
    states = [kernel.state for kernel in download_kernels(competition)]
    assert states == [PRESENT, GONE, DOWNLOADED, NOT_PYTHON, DOWNLOADED]
    assert "ada" not in {call.body["userName"] for call in kaggle.called("GetKernel")}


def test_nobody_is_asked_when_all_are_here(competition: Competition, kaggle: FakeKaggle, login: Path) -> None:
    (competition.folder / KERNELS).write_text("ada/first-look\n")
    assert [kernel.state for kernel in download_kernels(competition)] == [DOWNLOADED]
    login.unlink()
    assert [kernel.state for kernel in download_kernels(competition)] == [PRESENT]


def test_kaggle_may_ask_for_patience(competition: Competition, kaggle: FakeKaggle) -> None:
    kaggle.faults["GetKernel"] = [Fault(429, headers={"Retry-After": "7"}), Fault(503)]
    waits = Waits()
    assert next(download_kernels(competition, sleep=waits)).state == DOWNLOADED
    assert len(waits) == 2
    assert waits[0] >= 7


def test_a_private_notebook_counts_as_gone(competition: Competition, kaggle: FakeKaggle) -> None:
    kaggle.faults["GetKernel"] = [Fault(403, "private")]
    assert next(download_kernels(competition)).state == GONE


def test_a_wrong_login_is_reported(competition: Competition, kaggle: FakeKaggle) -> None:
    kaggle.logins.clear()
    with pytest.raises(PrerequisiteError, match="does not accept the login"):
        list(download_kernels(competition))


def test_a_folder_that_cannot_be_written(competition: Competition) -> None:
    kernels_dir(ID).mkdir(parents=True)
    (kernels_dir(ID) / "ada").touch()
    with pytest.raises(PrerequisiteError, match=r"cannot write to .*ada"):
        list(download_kernels(competition))


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a/../../b", "a/b/c", "a", "a/b\\c", "..", "a/.."])
def test_names_do_not_lead_out_of_the_folder(
    name: str, competition: Competition, kaggle: FakeKaggle, tmp_path: Path
) -> None:
    (competition.folder / KERNELS).write_text(f"{name}\n")
    before = files(tmp_path)
    assert [kernel.state for kernel in download_kernels(competition)] == ["not a name"]
    assert files(tmp_path) == before
    assert kaggle.called("GetKernel") == []


def test_the_list_can_be_refreshed(competition: Competition, kaggle: FakeKaggle) -> None:
    refs = ["new/one", "../../x", "new/two", "new/one", ""]
    kaggle.answers["ListKernels"] = {"kernels": [{"ref": ref} for ref in refs]}
    module.refresh_kernel_list(competition)
    assert (competition.folder / KERNELS).read_text() == "new/one\nnew/two\n"
    (call,) = kaggle.called("ListKernels")
    assert (call.body["competition"], call.body["language"]) == (ID, "python")
    kaggle.answers["ListKernels"] = {"kernels": []}
    with pytest.raises(PrerequisiteError, match="lists no notebooks"):
        module.refresh_kernel_list(competition)
    assert read_kernel_list(competition) == ["new/one", "new/two"]


def test_the_command(competition: Competition, kaggle: FakeKaggle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "get_competition", lambda *_: competition)
    kaggle.answers["ListKernels"] = {"kernels": [{"ref": name} for name in NAMES]}
    options = ["download-kernels", "-c", ID, "--refresh-list"]
    done = CliRunner().invoke(dev, options, catch_exceptions=False)
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"{ID}: bob/gone: gone or private", f"{ID}: eve/in-r: not Python"]
    assert lines[3].split() == [ID, "3", "0", "1", "1", "0"]
    assert len(kaggle.called("ListKernels")) == 1
