"""Files appear whole or not at all, and what killed processes left of them is recognised."""

import errno
import os
from pathlib import Path

import pytest

from mlebench.core.files import (
    STALE,
    is_temporary,
    remove_stale_temporaries,
    remove_temporaries,
    temporary_name,
    write_whole,
)


def test_temporary_names_are_recognised() -> None:
    assert is_temporary(temporary_name(Path("run.json")).name)
    for name in (
        "run.json",
        "run.json.part",
        "run.json.part-01",  # of `split`
        "run.json.mlebench-part-",
        "run.json.mlebench-part-1.csv",
        ".mlebench-part-1",
        "part-1",
    ):
        assert not is_temporary(name), name


def test_only_the_remains_of_the_named_files_are_removed(tmp_path: Path) -> None:
    for name in (
        "a.json",
        "a.json.mlebench-part-1",
        "a.json.mlebench-part-22",
        "b.json.mlebench-part-1",
        "aa.json.mlebench-part-1",
        "a.json.part",
    ):
        (tmp_path / name).touch()
    remove_temporaries(tmp_path / "a.json", tmp_path / "absent" / "a.json")
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.json",
        "b.json.mlebench-part-1",
        "aa.json.mlebench-part-1",
        "a.json.part",
    }


def test_what_a_living_process_may_be_writing_is_not_stale(tmp_path: Path) -> None:
    for name, age in (
        ("a.json.mlebench-part-1", STALE * 2),
        ("a.json.mlebench-part-2", STALE / 2),
        ("b.json.mlebench-part-1", STALE * 2),
    ):
        (tmp_path / name).touch()
        written = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (written, written))
    write_whole(tmp_path / "a.json", "{}")
    remove_stale_temporaries(tmp_path / "a.json")
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.json.mlebench-part-2", "b.json.mlebench-part-1"}


def _refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_was_replaced_was_written_whatever_the_disk_does_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to be removed: a caller that hears of a fault takes the old content for the current one."""
    monkeypatch.setattr(os, "unlink", _refuse)
    write_whole(tmp_path / "a.json", "{}")
    assert (tmp_path / "a.json").read_text() == "{}"


def test_what_failed_first_is_reported_if_nothing_can_be_removed_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").mkdir()
    monkeypatch.setattr(os, "unlink", _refuse)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "a.json", "{}")
