"""Trees that an agent left: `core.untrusted.walk`."""

import os
from pathlib import Path

from mlebench.core.untrusted import walk


def _names(root: Path, *inside: str, **limits: int) -> list[tuple[str, str | None]]:
    return [("/".join(entry.parts), entry.fault) for entry in walk(root, *inside, **limits)]


def test_names_are_sorted_and_files_come_before_what_is_in_folders(tmp_path: Path) -> None:
    for name in ("code/b/z.py", "code/a/y.py", "code/x.py", "code/a/a.py", "other/no.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [name for name, _ in _names(tmp_path, "code")] == ["code/x.py", "code/a/a.py", "code/a/y.py", "code/b/z.py"]
    assert _names(tmp_path, "missing") == []


def test_no_link_is_followed_at_any_step(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "inner").mkdir(parents=True)
    (secret / "key").touch()
    root = tmp_path / "run"
    root.mkdir()
    (root / "code").symlink_to(secret)
    refused = [("code", "cannot be read (a part of the path is not a folder)")]
    assert _names(root, "code") == refused
    assert _names(root, "code", "inner") == refused
    assert _names(root) == [("code", None)]  # the link itself, with its own status


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(tmp_path: Path) -> None:
    secret, root = tmp_path / "secret", tmp_path / "run"
    for folder in (secret, root / "inner"):
        folder.mkdir(parents=True)
    (secret / "key").touch()
    (root / "first").touch()
    entries = walk(root)
    assert next(entries).parts == ("first",)
    (root / "inner").rmdir()
    (root / "inner").symlink_to(secret)
    assert [entry.parts for entry in entries] == [("inner",)]


def test_depth_and_number_are_bounded_and_the_tree_says_so(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    for number in range(5):
        (tmp_path / "a" / str(number)).touch()
    assert _names(tmp_path, deepest=2)[-1] == ("a/b", "is nested too deeply")
    assert len(list(walk(tmp_path))) == 5
    some = _names(tmp_path, most=4)
    assert ("a", "holds too many files") in some
    assert len([name for name, fault in some if fault is None]) <= 3


def test_any_name_is_listed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\n")).touch()
    assert [os.fsencode(entry.parts[0]) for entry in walk(tmp_path)] == [b"\xff\n"]
