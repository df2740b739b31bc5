"""What docker is asked to do. The other tests in this folder check that it does."""

from pathlib import Path

import pytest
from support.sandboxes import make_task

from mlebench.sandbox.base import Bind
from mlebench.sandbox.docker import Docker


def _after(words: tuple[str, ...], option: str) -> list[str]:
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_a_run_sees_its_own_gpus_only(tmp_path: Path) -> None:
    launch = Docker().launch(make_task(tmp_path, "true", gpus=("1", "3")))
    assert _after(launch.argv, "--gpus") == ['"device=1,3"']
    assert "--gpus" not in Docker().launch(make_task(tmp_path, "true")).argv


def test_only_watched_folders_are_writable(tmp_path: Path) -> None:
    task = make_task(tmp_path, "true", binds=(Bind(tmp_path, "/home/data"),))
    launch = Docker().launch(task)
    assert "--read-only" in launch.argv
    writable = [text for text in _after(launch.argv, "--mount") if not text.endswith("readonly")]
    assert all(any(folder in text for folder in launch.writable) for text in writable)
    assert _after(launch.argv, "--network") == ["none"]
    assert _after(launch.argv, "--cap-drop") == ["ALL"]


def test_variables_are_not_passed_as_arguments(tmp_path: Path) -> None:
    launch = Docker().launch(make_task(tmp_path, "true", env={"API_KEY": "very-secret"}))
    assert not any("very-secret" in word for word in launch.argv)
    assert b"API_KEY=very-secret\n" in b"".join(launch.files.values())


@pytest.mark.parametrize("network", ["none", "full"])
def test_the_hosts_own_network_is_never_used(tmp_path: Path, network: str) -> None:
    assert "host" not in _after(Docker().launch(make_task(tmp_path, "true", network=network)).argv, "--network")


def test_a_missing_image_is_never_fetched(tmp_path: Path) -> None:
    assert _after(Docker().launch(make_task(tmp_path, "true")).argv, "--pull") == ["never"]
