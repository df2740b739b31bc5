"""What an agent leaves is copied as the hostile input it is."""

import os
import socket
import stat
from pathlib import Path

import pytest

from mlebench.core.os_errors import DiskSpace
from mlebench.sandbox.collect import CopyLimits, collect, snapshot


@pytest.fixture
def left(tmp_path: Path) -> Path:
    folder = tmp_path / "left"
    folder.mkdir()
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "answers.csv"
    path.parent.mkdir()
    path.write_text("the truth")
    return path


def test_files_and_folders_are_copied_and_are_ours(left: Path, tmp_path: Path) -> None:
    (left / "a" / "b").mkdir(parents=True)
    (left / "a" / "b" / "train.py").write_text("print()")
    (left / "a" / "b" / "train.py").chmod(0o4777)
    seen = collect(left, tmp_path / "copy")
    copy = tmp_path / "copy" / "a" / "b" / "train.py"
    assert copy.read_text() == "print()"
    assert copy.stat().st_uid == os.geteuid()
    assert not copy.stat().st_mode & (stat.S_ISUID | stat.S_IXUSR)
    assert (seen.files, seen.bytes, seen.left_out) == (1, 7, [])


def test_a_file_that_the_disk_has_no_room_for_is_linked_unless_it_may_be_anothers(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench.sandbox.collect.free_space", lambda _: DiskSpace(0, 1 << 20))
    (left / "large").write_bytes(bytes(10_000))
    (left / "large").chmod(0o4711)
    (tmp_path / "others").write_text("not the agent's")
    (tmp_path / "others").chmod(0o600)
    (left / "linked").hardlink_to(tmp_path / "others")
    seen = collect(left, tmp_path / "copy")
    assert (seen.files, seen.left_out) == (2, [])
    assert (tmp_path / "copy" / "large").samefile(left / "large")
    assert stat.S_IMODE((left / "large").stat().st_mode) == 0o644
    assert not (tmp_path / "copy" / "linked").samefile(tmp_path / "others")
    assert stat.S_IMODE((tmp_path / "others").stat().st_mode) == 0o600


def test_links_pipes_sockets_and_devices_are_left_out(left: Path, secret: Path, tmp_path: Path) -> None:
    (left / "submission.csv").symlink_to(secret)
    (left / "folder").symlink_to(secret.parent)
    (left / "nowhere").symlink_to("nowhere")
    os.mkfifo(left / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(left / "socket"))
    (left / "good.txt").write_text("kept")
    seen = collect(left, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").rglob("*")] == ["good.txt"]
    assert {item["name"] for item in seen.left_out} == {"submission.csv", "folder", "nowhere", "pipe", "socket"}


def test_a_folder_that_is_a_link_itself_is_not_followed(secret: Path, tmp_path: Path) -> None:
    (tmp_path / "submission").symlink_to(secret.parent)
    seen = collect(tmp_path / "submission", tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    assert seen.left_out_in_all == 1


def test_closed_files_and_folders_are_opened_by_their_owner(left: Path, tmp_path: Path) -> None:
    (left / "closed").mkdir()
    (left / "closed" / "file").write_text("x")
    (left / "closed" / "file").chmod(0)
    (left / "closed").chmod(0)
    collect(left, tmp_path / "copy")
    assert (tmp_path / "copy" / "closed" / "file").read_text() == "x"


def test_holes_stay_holes_and_large_files_are_left_out(left: Path, tmp_path: Path) -> None:
    with (left / "sparse").open("wb") as file:
        file.seek(5 << 30)
        file.write(b"end")
    with (left / "huge").open("wb") as file:
        file.truncate(50 << 30)
    seen = collect(left, tmp_path / "copy")
    copy = (tmp_path / "copy" / "sparse").stat()
    assert (copy.st_size, copy.st_blocks * 512 < 1 << 20) == ((5 << 30) + 3, True)
    assert [item["name"] for item in seen.left_out] == ["huge"]


def test_only_so_many_files_are_copied(left: Path, tmp_path: Path) -> None:
    for number in range(50):
        (left / f"{number:02}").write_text("x")
    seen = collect(left, tmp_path / "copy", CopyLimits(files=20))
    assert len(list((tmp_path / "copy").iterdir())) == 20
    assert seen.left_out_in_all == 30
    seen = collect(left, tmp_path / "other", CopyLimits(bytes=10))
    assert len(list((tmp_path / "other").iterdir())) == 10


def test_folders_without_end_are_cut_off(left: Path, tmp_path: Path) -> None:
    here = os.open(left, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert collect(left, tmp_path / "copy").left_out_in_all == 1


def test_names_that_are_not_text(left: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe\x1b[31m")
    (left / name).write_text("x")
    collect(left, tmp_path / "copy")
    assert (tmp_path / "copy" / name).read_text() == "x"


def test_a_snapshot_is_a_whole_file_or_none(left: Path, secret: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.csv"
    (left / "link.csv").symlink_to(secret)
    os.mkfifo(left / "pipe.csv")
    (left / "large.csv").write_bytes(bytes(11))
    for name in ("missing.csv", "link.csv", "pipe.csv", "large.csv"):
        assert not snapshot(left / name, target, limit=10)
        assert not target.exists()
    (left / "good.csv").write_bytes(b"0123456789")
    assert snapshot(left / "good.csv", target, limit=10)
    assert target.read_bytes() == b"0123456789"


def test_a_snapshot_that_changed_meanwhile_is_discarded(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlebench.sandbox import collect as module

    source = left / "submission.csv"
    source.write_text("first")
    copy = module._copy

    def copy_while_written(*arguments: int) -> None:
        copy(*arguments)
        source.write_text("second one")

    monkeypatch.setattr(module, "_copy", copy_while_written)
    assert not snapshot(source, tmp_path / "kept.csv", limit=100)
    assert list(tmp_path.glob("kept*")) == []
