"""Files by name: a folder and an archive behave the same, and a bad archive is reported as such."""

import io
import os
import re
import stat
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.engine import trees
from mlebench.engine.archives.zip_tree import ZipTree
from mlebench.engine.trees import FolderTree, Tree, create_whole

FILES = {"train.csv": b"id\n1\n", "train/1.png": b"one", "train/2.png": b"two", "train/deep/3.png": b"three"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _fill(tmp_path / "raw", FILES)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return _zip(tmp_path / "raw.zip", FILES)


@pytest.fixture(params=["folder", "archive"])
def tree(request: pytest.FixtureRequest) -> Tree:
    source = request.getfixturevalue(request.param)
    return FolderTree(source) if source.is_dir() else ZipTree(source)


def _fill(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def _zip(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("train/", b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _read(tree: Tree, name: str) -> bytes:
    with tree.open(name) as stream:
        return stream.read()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", ["train.csv"]),
        ("*.csv", ["train.csv"]),
        ("train/*", ["train/1.png", "train/2.png"]),
        ("train/?.png", ["train/1.png", "train/2.png"]),
        ("*/*.png", ["train/1.png", "train/2.png"]),
        ("train/**/*.png", ["train/1.png", "train/2.png", "train/deep/3.png"]),
        ("train/**", ["train/1.png", "train/2.png", "train/deep/3.png"]),
        ("**/*", ["train.csv", "train/1.png", "train/2.png", "train/deep/3.png"]),
        ("**", ["train.csv", "train/1.png", "train/2.png", "train/deep/3.png"]),
        ("**/*.csv", ["train.csv"]),
        ("train", []),
        ("TRAIN.csv", []),
        ("train.cs", []),
        ("train/[12].png", []),
    ],
)
def test_globs_find_only_files_sorted_by_name(tree: Tree, pattern: str, names: list[str]) -> None:
    assert tree.glob(pattern) == names


def test_a_double_star_must_be_between_slashes(tree: Tree) -> None:
    with pytest.raises(ValueError, match="between slashes"):
        tree.glob("train**.png")


NAMES = st.lists(st.sampled_from(["a", "b", "ab", "a.b", ".a", "[a]", "a b", "é"]), min_size=1, max_size=4).map(
    "/".join
)
PATTERNS = st.lists(
    st.sampled_from(["*", "**", "?", "a*", "*.b", "a", "[a]", ".*", "*b*", "??"]), min_size=1, max_size=4
)


@settings(max_examples=settings().max_examples // 2)
@given(st.sets(NAMES, max_size=10), st.lists(PATTERNS.map("/".join), min_size=1, max_size=8))
def test_globs_mean_the_same_in_a_folder_and_in_an_archive(names: set[str], patterns: list[str]) -> None:
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    files = dict.fromkeys(sorted(names - folders), b"")
    with TemporaryDirectory() as place:
        raw = Path(place) / "raw"
        raw.mkdir()
        in_folder, in_archive = FolderTree(_fill(raw, files)), ZipTree(_zip(Path(place) / "raw.zip", files))
        for pattern in patterns:
            assert in_folder.glob(pattern) == in_archive.glob(pattern), pattern
        assert in_archive.glob("**/*") == sorted(files)


def test_a_relative_folder_gives_full_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert FolderTree(Path()).glob("*.csv") == ["train.csv"]


def test_files_are_opened_and_known_by_name(tree: Tree) -> None:
    assert {name: _read(tree, name) for name in tree.glob("**/*")} == FILES
    assert tree.exists("train/1.png")
    assert not tree.exists("train")
    assert not tree.exists("train/9.png")


@pytest.mark.parametrize("name", ["test.csv", "train/9.png", "train", "train.csv/x"])
def test_a_missing_file_is_named_with_the_place_that_was_searched(tree: Tree, name: str) -> None:
    with pytest.raises(PrerequisiteError, match=re.escape(f"lacks {name} (looked in {tree.label})")):
        tree.open(name)


def test_members_can_be_read_from_any_place(archive: Path) -> None:
    with ZipTree(archive).open("train/deep/3.png") as stream:
        assert stream.seek(2) == 2
        assert stream.read() == b"ree"
        assert stream.seek(0) == 0
        assert stream.read(2) == b"th"


@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt", "/etc/evil", "..\\evil.txt", "a/.."])
def test_an_archive_that_climbs_out_of_its_folder_is_not_read_at_all(tmp_path: Path, name: str) -> None:
    archive = _zip(tmp_path / "evil.zip", {"good.txt": b"", name: b""})
    with pytest.raises(PrerequisiteError, match="climb out"):
        ZipTree(archive)


def test_an_encrypted_member_is_reported_as_such(tmp_path: Path) -> None:
    path = _zip(tmp_path / "secret.zip", {"a.txt": b"text"}, zipfile.ZIP_STORED)
    content = path.read_bytes()
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.rindex(signature) + flags
        content = content[:at] + b"\x01" + content[at + 1 :]
    path.write_bytes(content)
    with pytest.raises(PrerequisiteError, match=r"secret\.zip: a\.txt is encrypted"):
        ZipTree(path).open("a.txt")


@pytest.mark.parametrize("kept", [0, 10, 100, -1, -30])
def test_a_truncated_zip_is_reported_as_such(archive: Path, kept: int) -> None:
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(PrerequisiteError, match=r"raw\.zip cannot be read .* get the archive again"):
        ZipTree(archive)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_member_is_reported_when_it_is_read(tmp_path: Path, method: int) -> None:
    path = _zip(tmp_path / "raw.zip", {"a.csv": bytes(range(256)) * 40}, method)
    content = bytearray(path.read_bytes())
    at = content.index(b"a.csv") + 20
    content[at : at + 8] = b"\xff" * 8
    path.write_bytes(content)
    tree = ZipTree(path)
    with pytest.raises(PrerequisiteError, match=r"raw\.zip: a\.csv cannot be read"):
        _read(tree, "a.csv")
    with pytest.raises(PrerequisiteError, match=r"raw\.zip: a\.csv cannot be read"):
        tree.extract("a.csv", str(tmp_path / "copy.csv"))
    assert not (tmp_path / "copy.csv").exists()


def test_a_placed_file_is_linked_from_a_folder_and_copied_from_an_archive(
    folder: Path, archive: Path, tmp_path: Path
) -> None:
    before = (folder / "train/1.png").stat().st_mtime_ns
    FolderTree(folder).extract("train/1.png", str(tmp_path / "linked.png"))
    assert (tmp_path / "linked.png").samefile(folder / "train/1.png")
    assert (folder / "train/1.png").stat().st_mtime_ns == before
    ZipTree(archive).extract("train/1.png", str(tmp_path / "copied.png"))
    assert (tmp_path / "copied.png").read_bytes() == b"one"
    for name in ("linked.png", "copied.png"):
        assert _mode(tmp_path / name) == 0o644


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("no_links")
def test_if_links_are_impossible_a_file_is_copied(folder: Path, tmp_path: Path) -> None:
    mode = _mode(folder / "train/1.png")
    FolderTree(folder).extract("train/1.png", str(tmp_path / "copied.png"))
    assert (tmp_path / "copied.png").read_bytes() == b"one"
    assert _mode(tmp_path / "copied.png") == 0o644
    assert _mode(folder / "train/1.png") == mode
    assert not (tmp_path / "copied.png").samefile(folder / "train/1.png")


@pytest.mark.usefixtures("no_links")
def test_a_copy_gets_its_time_when_all_of_it_is_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(folder / "train/1.png", ns=(1, 123456789_000000000))
    sizes = []
    set_time = os.utime

    def note_size(descriptor: int, ns: tuple[int, int]) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        set_time(descriptor, ns=ns)

    monkeypatch.setattr(os, "utime", note_size)
    FolderTree(folder).extract("train/1.png", str(tmp_path / "copied.png"))
    assert sizes == [3]
    assert (tmp_path / "copied.png").stat().st_mtime_ns == 123456789_000000000


@pytest.mark.usefixtures("no_links")
def test_a_copy_is_recognised_unless_the_raw_file_was_replaced(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied.png"
    tree = FolderTree(folder)
    tree.extract("train/1.png", str(copy))
    assert tree.is_extracted("train/1.png", str(copy))
    os.utime(copy, ns=(0, copy.stat().st_mtime_ns // 2_000_000_000 * 2_000_000_000))
    assert tree.is_extracted("train/1.png", str(copy)), "some disks keep times to two seconds"
    (folder / "train/1.png").write_bytes(b"ONE")
    os.utime(folder / "train/1.png", ns=(0, copy.stat().st_mtime_ns + 60_000_000_000))
    assert not tree.is_extracted("train/1.png", str(copy))


def test_a_raw_file_that_is_a_symbolic_link_is_placed_as_the_file_it_leads_to(folder: Path, tmp_path: Path) -> None:
    (folder / "alias.png").symlink_to("train/1.png")
    FolderTree(folder).extract("alias.png", str(tmp_path / "placed.png"))
    assert not (tmp_path / "placed.png").is_symlink()
    assert (tmp_path / "placed.png").read_bytes() == b"one"


def test_placing_a_missing_file_names_it(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"lacks 9\.png"):
        tree.extract("9.png", str(tmp_path / "9.png"))
    assert not (tmp_path / "9.png").exists()


def test_placing_never_overwrites(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "there.png").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        tree.extract("train/1.png", str(tmp_path / "there.png"))
    assert (tmp_path / "there.png").read_bytes() == b"mine"


def test_sizes_and_facts_are_known_without_reading(tree: Tree) -> None:
    assert {name: tree.size(name) for name in tree.glob("**")} == {
        name: len(content) for name, content in FILES.items()
    }
    facts = tree.facts("train/deep/3.png")
    assert facts.pop("size") == 5
    assert len(facts) == 1
    with pytest.raises(PrerequisiteError, match=r"lacks 9\.png"):
        tree.size("9.png")


def test_files_placed_by_an_earlier_attempt_are_recognised(tree: Tree, tmp_path: Path) -> None:
    placed = tmp_path / "placed.png"
    tree.extract("train/1.png", str(placed))
    assert tree.is_extracted("train/1.png", str(placed))
    assert not tree.is_extracted("train/deep/3.png", str(placed))
    placed.unlink()
    placed.write_bytes(b"one")
    assert not tree.is_extracted("train/1.png", str(placed)), "it does not have the time that is set last"
    placed.unlink()
    placed.symlink_to("elsewhere")
    assert not tree.is_extracted("train/1.png", str(placed))


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o777])
def test_a_written_file_has_the_same_mode_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    trees._umask.cache_clear()
    try:
        create_whole(str(tmp_path / "whole"), b"one")
        with trees.create(str(tmp_path / "piece by piece")) as target:
            target.write(b"one")
    finally:
        os.umask(before)
        trees._umask.cache_clear()
    assert {_mode(path) for path in tmp_path.iterdir()} == {0o644}


def test_an_archive_with_unknown_compression_is_reported_as_such(tmp_path: Path) -> None:
    path = _zip(tmp_path / "odd.zip", {"a.txt": b"text"}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    for signature, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.rindex(signature) + method] = 99
    path.write_bytes(io.BytesIO(content).getvalue())
    with pytest.raises(PrerequisiteError, match="cannot be read"):
        ZipTree(path).open("a.txt")


def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(PrerequisiteError, match=r"lacks a\.csv"):
        FolderTree(tmp_path).open("a.csv")
