"""Tar and 7z archives: the same files as in a folder, written once; what could do harm is refused by name."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import py7zr
import pytest

from mlebench.errors import PrerequisiteError
from mlebench.kit import Output, inspection, open_raw
from mlebench.kit.outputs import finish
from mlebench.kit.twins import zip_bytes

FILES = {"train/a.txt": b"a" * 5000, "train/deep/b é.bin": bytes(range(256)) * 40, "empty": b"", "z.csv": b"a,b\n1,2\n"}


def tar_bytes(files: Mapping[str, bytes], mode: str = "w", special: Mapping[str, bytes] | None = None) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, kind in (special or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "a"
            archive.addfile(info)
    return stream.getvalue()


def seven_zip_bytes(files: Mapping[str, bytes], **options: str) -> bytes:
    stream = io.BytesIO()
    with py7zr.SevenZipFile(stream, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(content, name)
    return stream.getvalue()


PACKERS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "raw.tar": tar_bytes,
    "raw.tar.gz": lambda files: tar_bytes(files, "w:gz"),
    "raw.tar.bz2": lambda files: tar_bytes(files, "w:bz2"),
    "raw.tgz": tar_bytes,  # a name may say what is not so
    "raw.7z": seven_zip_bytes,
}
every_format = pytest.mark.parametrize("name", PACKERS)


@every_format
@pytest.mark.parametrize("inside", [False, True], ids=["in a folder", "in a zip"])
def test_files_are_those_that_were_packed(tmp_path: Path, name: str, inside: bool) -> None:
    raw, content = tmp_path / "raw", PACKERS[name](FILES)
    if inside:
        raw.write_bytes(zip_bytes({f"sub/{name}": content}))
    else:
        (raw / "sub").mkdir(parents=True)
        (raw / "sub" / name).write_bytes(content)
    with open_raw(raw, tmp_path) as opened:
        archive = opened.archive(f"sub/{name}")
        assert {file.name: file.read() for file in archive.files("**")} == FILES
        assert archive.table("z.csv")["b"].tolist() == [2]
        assert archive.file("train/a.txt").path.stem == "a"
        with pytest.raises(PrerequisiteError, match=rf"lacks no\.txt .*sub/{name}"):
            archive.open("no.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw"]


@pytest.mark.parametrize("name", [*PACKERS, "raw.zip"])
@pytest.mark.parametrize("inside", [False, True], ids=["in a folder", "in a zip"])
def test_names_are_told_without_unpacking(tmp_path: Path, name: str, inside: bool) -> None:
    raw, content = tmp_path / "raw", (PACKERS | {"raw.zip": zip_bytes})[name](FILES)
    if inside:
        raw.write_bytes(zip_bytes({name: content}))
    else:
        raw.mkdir()
        (raw / name).write_bytes(content)
    with open_raw(raw, tmp_path) as opened:
        assert opened.member_names(name) == sorted(FILES)
        assert not [path for path in tmp_path.rglob("*") if path.name == "a.txt"]


def test_names_that_begin_with_a_dot_and_a_slash_are_told_without_it(tmp_path: Path) -> None:
    (tmp_path / "raw.tar").write_bytes(tar_bytes({"./b/c": b"1", "./a": b"2"}, special={"./d": tarfile.DIRTYPE}))
    with open_raw(tmp_path, tmp_path) as raw:
        assert raw.member_names("raw.tar") == ["a", "b/c"]


@every_format
def test_names_in_an_archive_that_is_cut_off_are_not_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKERS[name](FILES)[: -20_000 if name.endswith(("tar", "tgz")) else -20])
    with open_raw(tmp_path, tmp_path) as raw, pytest.raises(PrerequisiteError, match=rf"{name} cannot be read"):
        raw.member_names(name)


@every_format
def test_placed_files_are_written_once_and_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / name).write_bytes(PACKERS[name](FILES))
    public = Output(tmp_path / "public")
    with open_raw(tmp_path / "raw", tmp_path) as raw:
        archive = raw.archive(name)
        for file in archive.files("**"):
            public.place(file, f"out/{file.name}")
        finish([public], tmp_path)
        unpacked = next(path for path in tmp_path.rglob("a.txt") if "public" not in path.parts)
        assert unpacked.stat().st_ino == (tmp_path / "public/out/train/a.txt").stat().st_ino
    for member, content in FILES.items():
        path = tmp_path / "public/out" / member
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o444


def _refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    place = tmp_path / "a/b"
    (place / "raw").mkdir(parents=True)
    (place / "raw" / name).write_bytes(content)
    with open_raw(place / "raw", place) as raw, pytest.raises(PrerequisiteError, match=message):
        raw.archive(name)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [name], "nothing is left or let out"


@pytest.mark.parametrize("member", ["/absolute.txt", "../climbs.txt", "a/../../climbs.txt", "a\\b.txt", "C:x.txt"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, member: str) -> None:
    _refused(tmp_path, "raw.tar", tar_bytes({"good.txt": b"", member: b"x"}), "would climb out of its folder")


def test_a_7z_archive_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    names = {"good.txt": b"", "aa/climbs.txt": b"x"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("py7zr.py7zr.check_archive_path", lambda name: True)
        content = seven_zip_bytes({name.replace("aa", ".."): text for name, text in names.items()})
    _refused(tmp_path, "raw.7z", content, r"member \.\./climbs\.txt would climb out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    _refused(tmp_path, "raw.tar", tar_bytes({"a": b"x"}, special={"odd": kind}), "member odd is a link or a device")


@every_format
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["Readme", "README"], "member README has the same name as Readme, but for case"),
        (["a/b", "a"], "member a is a file, but other members lie in a folder"),
        (["a", "a/b"], "member a/b lies in a, which is a file"),
        (["A", "a/b/c"], "member a/b/c lies in A, which is a file"),
    ],
)
def test_members_that_cannot_lie_side_by_side_are_refused(
    tmp_path: Path, name: str, members: list[str], message: str
) -> None:
    _refused(tmp_path, name, PACKERS[name](dict.fromkeys(members, b"x")), message)


@pytest.mark.parametrize("second", ["a", "./a", ".//a"])
def test_a_name_that_comes_twice_is_refused(tmp_path: Path, second: str) -> None:
    first = tar_bytes({"a": b"1"}).rstrip(b"\0").ljust(1024, b"\0")
    _refused(tmp_path, "raw.tar", first + tar_bytes({second: b"2"}), "member a has the same name as a")


@pytest.mark.parametrize("name", ["raw.tar", "raw.7z"])
def test_an_archive_that_ends_with_a_zip_is_not_taken_for_it(tmp_path: Path, name: str) -> None:
    stream = io.BytesIO()
    with py7zr.SevenZipFile(stream, "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.writestr(zip_bytes({"within": b"x"}), "last.zip")
    tar = tar_bytes({"last.zip": zip_bytes({"within": b"x"})})
    (tmp_path / name).write_bytes(tar if name == "raw.tar" else stream.getvalue())
    with open_raw(tmp_path, tmp_path) as raw:
        assert raw.member_names(name) == ["last.zip"]
        assert raw.archive(name).archive("last.zip").file("within").read() == b"x"


def test_a_folder_that_its_archive_locks_is_open(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked/a.txt").write_bytes(b"x")
    (tmp_path / "locked").chmod(0o500)
    with py7zr.SevenZipFile(tmp_path / "raw.7z", "w") as archive:
        archive.writeall(tmp_path / "locked", "locked")
    with open_raw(tmp_path, tmp_path) as raw:
        path = raw.archive("raw.7z").file("locked/a.txt").tree.path("locked")
        assert path
        assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["raw.tar.gz", "raw.7z"])
def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "BOMB_BYTES", 50_000)
    _refused(tmp_path, name, PACKERS[name]({"bomb.bin": bytes(1_000_000)}), "would unpack to far more")


@every_format
@pytest.mark.parametrize("left", [0.3, 0.7])
def test_an_archive_that_is_cut_off_is_told_as_such(tmp_path: Path, name: str, left: float) -> None:
    content = PACKERS[name](FILES)
    _refused(tmp_path, name, content[: int(len(content) * left)], rf"{name} cannot be read")


@pytest.mark.parametrize("name", ["raw.tar.gz", "raw.tar.bz2", "raw.7z"])
def test_damage_is_seen(tmp_path: Path, name: str) -> None:
    content = bytearray(PACKERS[name](FILES))
    content[len(content) // 3] ^= 0xFF
    _refused(tmp_path, name, bytes(content), rf"{name} cannot be read")


@pytest.mark.parametrize("end", [1536, 1600], ids=["before a header", "in a header"])
def test_a_tar_that_ends_too_early_is_told_as_such(tmp_path: Path, end: int) -> None:
    content = tar_bytes({"aa": b"x" * 600, "bb": b"y"})
    _refused(tmp_path, "raw.tar", content[:end], r"raw\.tar cannot be read")


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    content = bytearray(tar_bytes({"aa": b"x" * 600, "bb": b"y"}))
    content[1536] ^= 1
    _refused(tmp_path, "raw.tar", bytes(content), r"raw\.tar cannot be read")


def test_what_is_no_archive_is_told_as_such(tmp_path: Path) -> None:
    _refused(tmp_path, "raw.7z", b"no archive at all", r"raw\.7z cannot be read")


def test_an_encrypted_archive_is_told_as_such(tmp_path: Path) -> None:
    _refused(tmp_path, "raw.7z", seven_zip_bytes({"a": b"x"}, password="secret"), r"raw\.7z is encrypted")


def test_without_the_library_the_reader_is_told_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "py7zr", None)
    _refused(tmp_path, "raw.7z", seven_zip_bytes({"a": b"x"}), r"pip install mlebench\[7z\]")
