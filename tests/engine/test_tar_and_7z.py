"""Tar and 7z archives: the same files as in a folder, written once; harmful members are refused by name."""

import gzip
import io
import random
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import py7zr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.archives import member_checks, read_7z
from mlebench.kit import Output, open_raw
from mlebench.kit.outputs import finish
from mlebench.kit.twins import zip_bytes

FILES = {"train/a.txt": b"a" * 5000, "train/deep/b é.bin": bytes(range(256)) * 40, "empty": b"", "z.csv": b"a,b\n1,2\n"}


def tar_bytes(
    files: Mapping[str, bytes],
    mode: Literal["w", "w:gz", "w:bz2", "w:xz"] = "w",
    special: Mapping[str, bytes] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = dict(headers or {})
            archive.addfile(info, io.BytesIO(content))
        for name, kind in (special or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "a"
            archive.addfile(info)
    return stream.getvalue()


def seven_zip_bytes(files: Mapping[str, bytes], password: str | None = None) -> bytes:
    stream = io.BytesIO()
    with py7zr.SevenZipFile(stream, "w", password=password) as archive:
        for name, content in files.items():
            archive.writestr(content, name)
    return stream.getvalue()


PACKERS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "raw.tar": tar_bytes,
    "raw.tar.gz": lambda files: tar_bytes(files, "w:gz"),
    "raw.tar.bz2": lambda files: tar_bytes(files, "w:bz2"),
    "raw.tar.xz": lambda files: tar_bytes(files, "w:xz"),
    "raw.tgz": tar_bytes,  # a name may be misleading
    "raw.7z": seven_zip_bytes,
}
every_format = pytest.mark.parametrize("name", PACKERS)


@every_format
@pytest.mark.parametrize("inside", [False, True], ids=["in a folder", "in a zip"])
def test_unpacked_files_match_the_packed_ones(tmp_path: Path, name: str, inside: bool) -> None:
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
def test_names_are_listed_without_unpacking(tmp_path: Path, name: str, inside: bool) -> None:
    raw, content = tmp_path / "raw", (PACKERS | {"raw.zip": zip_bytes})[name](FILES)
    if inside:
        raw.write_bytes(zip_bytes({name: content}))
    else:
        raw.mkdir()
        (raw / name).write_bytes(content)
    with open_raw(raw, tmp_path) as opened:
        assert opened.member_names(name) == sorted(FILES)
        assert not [path for path in tmp_path.rglob("*") if path.name == "a.txt"]


def test_names_are_listed_without_a_leading_dot_slash(tmp_path: Path) -> None:
    (tmp_path / "raw.tar").write_bytes(tar_bytes({"./b/c": b"1", "./a": b"2"}, special={"./d": tarfile.DIRTYPE}))
    with open_raw(tmp_path, tmp_path) as raw:
        assert raw.member_names("raw.tar") == ["a", "b/c"]


@every_format
def test_names_in_a_truncated_archive_are_not_listed(tmp_path: Path, name: str) -> None:
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
        assert path.stat().st_mode & 0o777 == 0o644


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


@every_format
def test_a_name_that_no_disk_accepts_is_refused(tmp_path: Path, name: str) -> None:
    content = PACKERS[name]({"good.txt": b"", f"a/{'é' * 128}/b": b"x"})
    _refused(tmp_path, name, content, "member a/é+/b has a name that no disk accepts")


@pytest.mark.parametrize("member", ["", ".", "./"])
def test_a_file_without_a_name_is_refused(tmp_path: Path, member: str) -> None:
    _refused(tmp_path, "raw.tar", tar_bytes({member: b"x"}), r"member ('')?\.? has a name that no file can have")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    _refused(tmp_path, "raw.tar", tar_bytes({"a": b"x"}, special={"odd": kind}), "member odd is a link or a device")


@every_format
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["Readme", "README"], "member README has the same name as Readme, except for case"),
        (["e\u0301", "\u00c9"], "member \u00c9 has the same name as e\u0301, except for case or Unicode form"),
        (["a/b", "a"], "member a is a file, but other members are in a folder"),
        (["a", "a/b"], "member a/b is inside a, which is a file"),
        (["A", "a/b/c"], "member a/b/c is inside A, which is a file"),
    ],
)
def test_members_with_conflicting_names_are_refused(
    tmp_path: Path, name: str, members: list[str], message: str
) -> None:
    _refused(tmp_path, name, PACKERS[name](dict.fromkeys(members, b"x")), message)


@pytest.mark.parametrize("second", ["a", "./a", ".//a"])
def test_a_name_that_comes_twice_is_refused(tmp_path: Path, second: str) -> None:
    first = tar_bytes({"a": b"1"}).rstrip(b"\0").ljust(1024, b"\0")
    _refused(tmp_path, "raw.tar", first + tar_bytes({second: b"2"}), "member a has the same name as a")


@pytest.mark.parametrize("name", ["raw.tar", "raw.7z"])
def test_an_archive_that_ends_with_a_zip_does_not_count_as_one(tmp_path: Path, name: str) -> None:
    stream = io.BytesIO()
    with py7zr.SevenZipFile(stream, "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.writestr(zip_bytes({"within": b"x"}), "last.zip")
    tar = tar_bytes({"last.zip": zip_bytes({"within": b"x"})})
    (tmp_path / name).write_bytes(tar if name == "raw.tar" else stream.getvalue())
    with open_raw(tmp_path, tmp_path) as raw:
        assert raw.member_names(name) == ["last.zip"]
        assert raw.archive(name).archive("last.zip").file("within").read() == b"x"


def test_folders_are_readable_whatever_the_archive_says(tmp_path: Path) -> None:
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
def test_archives_that_unpack_to_too_much_are_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_checks, "BOMB_BYTES", 50_000)
    _refused(tmp_path, name, PACKERS[name]({"bomb.bin": bytes(1_000_000)}), "would unpack to far more")


@every_format
@pytest.mark.parametrize("left", [0.3, 0.7])
def test_a_truncated_archive_is_reported_as_such(tmp_path: Path, name: str, left: float) -> None:
    content = PACKERS[name](FILES)
    _refused(tmp_path, name, content[: int(len(content) * left)], rf"{name} cannot be read")


def _damaged(content: bytes) -> Iterator[bytes]:
    """The bytes with a different bit changed in each byte, and cut off at each place."""
    chance = random.Random(0)
    for at in range(len(content)):
        yield content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
        yield content[:at]


def _contents(folder: Path, name: str) -> dict[str, bytes]:
    with open_raw(folder, folder) as raw:
        return {file.name: file.read() for file in raw.archive(name).files("**")}


def _names(folder: Path, name: str) -> list[str]:
    with open_raw(folder, folder) as raw:
        return raw.member_names(name)


def _unless_refused(look: Callable[[Path, str], Any], folder: Path, name: str) -> Any:
    try:
        return look(folder, name)
    except PrerequisiteError:
        return None


@pytest.mark.parametrize(
    "name",
    ["raw.tar.gz", "raw.7z", *(pytest.param(rare, marks=pytest.mark.full) for rare in ("raw.tar.bz2", "raw.tar.xz"))],
)
def test_no_damage_goes_unnoticed(tmp_path: Path, name: str) -> None:
    files = {"train/a é.txt": b"abc" * 20, "empty": b"", "z.csv": b"a,b\n1,2\n"}
    refused = []
    for content in _damaged(PACKERS[name](files)):
        (tmp_path / name).write_bytes(content)
        found, names = _unless_refused(_contents, tmp_path, name), _unless_refused(_names, tmp_path, name)
        assert found in (None, files)
        assert names in (None, sorted(files))
        refused.append(found is None)
    assert sum(refused) > 0.7 * len(refused), "few bytes do not matter, such as the time in a gzip header"


def test_no_damage_to_a_header_goes_unnoticed(tmp_path: Path) -> None:
    """An uncompressed tar has checksums only of its headers."""
    files = {"aa": b"x" * 600, "bb": b"y"}
    content = tar_bytes(files)
    for at in (*range(512), *range(1536, 2048)):
        (tmp_path / "raw.tar").write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        assert _unless_refused(_contents, tmp_path, "raw.tar") in (None, files)


def test_a_file_of_zeros_is_not_an_archive(tmp_path: Path) -> None:
    _refused(tmp_path, "raw.tar", bytes(10240), r"raw\.tar cannot be read \(it is empty\)")


def test_a_header_of_zeros_does_not_count_as_the_end(tmp_path: Path) -> None:
    content = tar_bytes({"aa": b"x", "bb": b"y" * 2000})
    content = content[:1024] + bytes(512) + content[1536:]
    _refused(tmp_path, "raw.tar", content, r"raw\.tar cannot be read \(it continues")


def test_data_after_the_end_is_fine_if_a_checksum_covers_it(tmp_path: Path) -> None:
    (tmp_path / "raw.tar.gz").write_bytes(gzip.compress(tar_bytes({"a": b"x"}) + b"from a tape"))
    with open_raw(tmp_path, tmp_path) as raw:
        assert raw.archive("raw.tar.gz").file("a").read() == b"x"


def test_a_failed_unpacking_does_not_count_as_complete(tmp_path: Path) -> None:
    content = tar_bytes(FILES)
    with open_raw(tmp_path, tmp_path) as raw:
        (tmp_path / "raw.tar").write_bytes(content[:7000])
        for _ in range(2):
            with pytest.raises(PrerequisiteError, match="cannot be read"):
                raw.archive("raw.tar")
        (tmp_path / "raw.tar").write_bytes(content)
        assert len(raw.archive("raw.tar").files("**")) == len(FILES)


def _header(name: str, size: int, kind: bytes) -> bytes:
    """A header with a size that Python would not write."""
    info = tarfile.TarInfo(name)
    info.type = kind
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = (size % (1 << 95) | 1 << 95 | (size < 0) << 94).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("first", [b"", tar_bytes({"first": b""})[:512]], ids=["first", "second"])
@pytest.mark.parametrize(
    "header",
    [
        _header("a", -512, tarfile.REGTYPE),
        _header("a", 1 << 70, tarfile.REGTYPE),
        _header("a", 1 << 62, tarfile.XHDTYPE),
        _header("a", 1 << 40, tarfile.GNUTYPE_LONGNAME),
        _header("a", -1, tarfile.GNUTYPE_LONGNAME),
        _header("a", 0, tarfile.XHDTYPE) * 2000,
        tar_bytes({"b": b""}, headers={"size": "-1"}),
        tar_bytes({"b": b""}, headers={"size": "9" * 30}),
        tar_bytes({"b": b"x" * 600}, headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}),
        tar_bytes({"b": b"x"}, headers={"GNU.sparse.map": "0,x"}),
    ],
    ids=["before", "beyond", "pax", "name", "negative name", "many", "size", "large size", "no map", "odd map"],
)
def test_an_impossible_header_is_reported_as_such(tmp_path: Path, header: bytes, first: bytes) -> None:
    content = first + header + tar_bytes({"last": b""})
    for look in (_contents, _names):
        (tmp_path / "raw.tar").write_bytes(content)
        with pytest.raises(PrerequisiteError, match=r"raw\.tar cannot be read \(.*\); get the archive again$"):
            look(tmp_path, "raw.tar")


def test_holes_are_zeros(tmp_path: Path) -> None:
    """A file that is mostly holes, as `tar --sparse` packs it."""
    holes = {"GNU.sparse.map": "0,2,1000,3", "GNU.sparse.size": "5000", "GNU.sparse.name": "b"}
    (tmp_path / "raw.tar.gz").write_bytes(tar_bytes({"a": b"12345"}, "w:gz", headers=holes))
    assert _contents(tmp_path, "raw.tar.gz") == {"b": b"12" + bytes(998) + b"345" + bytes(3997)}


@pytest.mark.parametrize("end", [1536, 1600], ids=["before a header", "in a header"])
def test_a_tar_that_ends_too_early_is_reported_as_such(tmp_path: Path, end: int) -> None:
    content = tar_bytes({"aa": b"x" * 600, "bb": b"y"})
    _refused(tmp_path, "raw.tar", content[:end], r"raw\.tar cannot be read")


def test_a_damaged_header_does_not_count_as_the_end(tmp_path: Path) -> None:
    content = bytearray(tar_bytes({"aa": b"x" * 600, "bb": b"y"}))
    content[1536] ^= 1
    _refused(tmp_path, "raw.tar", bytes(content), r"raw\.tar cannot be read")


def test_anything_but_an_archive_is_reported_as_such(tmp_path: Path) -> None:
    _refused(tmp_path, "raw.7z", b"no archive at all", r"raw\.7z cannot be read")


def test_an_encrypted_archive_is_reported_as_such(tmp_path: Path) -> None:
    _refused(tmp_path, "raw.7z", seven_zip_bytes({"a": b"x"}, password="secret"), r"raw\.7z is encrypted")


FILTERS = {
    "lzma2": [{"id": py7zr.FILTER_LZMA2, "preset": 0}],
    "lzma1": [{"id": py7zr.FILTER_LZMA, "preset": 0}],
    "lzma1 behind a filter": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA, "preset": 0}],
    "lzma2 behind a filter": [{"id": py7zr.FILTER_DELTA}, {"id": py7zr.FILTER_LZMA2, "preset": 0}],
    "bzip2": [{"id": py7zr.FILTER_BZIP2}],
    "deflate": [{"id": py7zr.FILTER_DEFLATE}],
    "zstd": [{"id": py7zr.FILTER_ZSTD}],
    "brotli": [{"id": py7zr.FILTER_BROTLI, "level": 1}],
    "ppmd": [{"id": py7zr.FILTER_PPMD, "order": 4, "mem": 20}],
    "copy": [{"id": py7zr.FILTER_COPY}],
}


# py7zr corrupts an archive when it adds to one with a single file, or empty ones.
CONTENTS = st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=40), st.integers(1, 900))


@given(
    st.sampled_from(list(FILTERS)),
    st.lists(st.lists(CONTENTS, min_size=2, max_size=5), min_size=1, max_size=2),
    st.sampled_from([7, 1000, read_7z.BLOCK_BYTES]),
)
@settings(max_examples=20, deadline=None)
def test_every_way_to_pack_a_7z_unpacks_to_the_same_files(
    method: str, sessions: list[list[tuple[int, bytes, int]]], block: int
) -> None:
    """Files of one session are packed as one stream, which is unpacked in blocks that end anywhere."""
    files = {}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_7z, "BLOCK_BYTES", block)
        path = Path(folder, "raw.7z")
        for session, members in enumerate(sessions):
            with py7zr.SevenZipFile(path, "a" if session else "w", filters=FILTERS[method]) as archive:
                for number, (depth, text, times) in enumerate(members):
                    name = f"{'d/' * depth}{session}-{number}"
                    files[name] = text * times
                    archive.writestr(files[name], name)
        assert _contents(Path(folder), "raw.7z") == files


def _with_header(old: bytes, new: bytes) -> bytes:
    """A 7z archive of two files, `a` and `b`, with other bytes in its header; its checksums are right."""
    stream = io.BytesIO()
    with py7zr.SevenZipFile(stream, "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.set_encoded_header_mode(False)
        archive.writestr(b"12345", "a")
        archive.writestr(b"123", "b")
    content = stream.getvalue()
    position, size = struct.unpack("<QQ", content[12:28])
    header = content[32 + position :]
    assert len(header) == size
    assert header.count(old) == 1
    header = header.replace(old, new)
    start = struct.pack("<QQI", position, len(header), zlib.crc32(header))
    return content[:8] + struct.pack("<I", zlib.crc32(start)) + start + content[32 : 32 + position] + header


def test_a_7z_with_a_negative_file_size_is_refused(tmp_path: Path) -> None:
    """The size of the last file is the remainder; a negative one would hide a bomb in the sum."""
    # Two files, the first of five bytes.
    content = _with_header(b"\x0d\x02\x09\x05", b"\x0d\x02\x09\x64")
    _refused(tmp_path, "raw.7z", content, r"raw\.7z cannot be read \(member b is cut off\)")


def test_a_7z_that_names_fewer_files_than_it_holds_is_refused(tmp_path: Path) -> None:
    def sums(*files: bytes) -> bytes:
        return b"\x0a\x01" + b"".join(struct.pack("<I", zlib.crc32(file)) for file in files)

    two = b"\x0d\x02\x09\x05" + sums(b"12345", b"123")
    content = _with_header(two, b"\x0d\x03\x09\x05\x01" + sums(b"12345", b"1", b"23"))
    _refused(tmp_path, "raw.7z", content, r"raw\.7z cannot be read \(it names fewer members than it holds\)")


def test_a_7z_with_a_file_that_is_named_like_a_folder_is_refused(tmp_path: Path) -> None:
    names = b"\x11\x09\x00a\0\0\0b\0\0\0"
    content = _with_header(names, b"\x11\x0b\x00a\0\0\0b\0/\0\0\0")
    _refused(tmp_path, "raw.7z", content, r"member b/ has a name that no file can have")
