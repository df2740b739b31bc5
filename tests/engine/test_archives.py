"""Archives come from outside: a fault is reported with the member's name, and nothing is written elsewhere."""

import hashlib
import random
import re
import stat
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.archives import member_checks, zip_tree
from mlebench.engine.archives.zip_tree import ZipTree
from mlebench.kit import Output, open_raw
from mlebench.kit.outputs import finish

pytestmark = pytest.mark.bytes

TEXT = b"some text, " * 200
Name = str | zipfile.ZipInfo
LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
# Where fields are in a member's two headers.
FLAGS, CRC, PACKED, SIZE, HEADER_OFFSET = (
    {LOCAL: 6, CENTRAL: 8},
    {CENTRAL: 16},
    {CENTRAL: 20},
    {CENTRAL: 24},
    {CENTRAL: 42},
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to extract to, deep enough that climbing out of it would still be noticed."""
    place = tmp_path / "a/b/c"
    place.mkdir(parents=True)
    return place


@pytest.fixture(params=["in one go", "in pieces"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small and large members are unpacked by different code."""
    if request.param == "in pieces":
        monkeypatch.setattr(zip_tree, "WHOLE_BYTES", -1)


both_ways = pytest.mark.usefixtures("_both_ways")
methods = pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])


def _info(name: str, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("placeholder")
    info.filename = name  # as it is, even where zipfile would correct it
    info.external_attr = mode << 16
    return info


def _zip(path: Path, members: Sequence[tuple[Name, bytes]], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for member, content in members:
            info = _info(member) if isinstance(member, str) else member
            archive.writestr(info, content, info.compress_type if isinstance(member, zipfile.ZipInfo) else method)
    return path


def _patch(path: Path, field: dict[bytes, int], value: bytes, member: int = 0) -> None:
    """Overwrite a field of one member's headers."""
    content = bytearray(path.read_bytes())
    for signature, offset in field.items():
        starts = [match.start() for match in re.finditer(re.escape(signature), bytes(content))]
        at = starts[member] + offset
        content[at : at + len(value)] = value
    path.write_bytes(content)


def _assert_refused(archive: Path, member: str, reason: str) -> None:
    """The archive cannot even be opened, and nothing is written, here or elsewhere."""
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(PrerequisiteError) as caught:
        ZipTree(archive)
    assert f"member {member} " in str(caught.value)
    assert reason in str(caught.value)
    assert sorted(archive.parent.rglob("*")) == before


def _assert_unreadable(archive: Path, place: Path, name: str = "a.txt", reason: str = "cannot be read") -> None:
    """One member is damaged: the others are not, and nothing of that one is left behind."""
    tree, before = ZipTree(archive), sorted(archive.parent.rglob("*"))
    with pytest.raises(PrerequisiteError, match=re.escape(f"{archive}: {name} {reason}")):
        tree.extract(name, str(place / "bad.txt"))
    left = place / "bad.txt"
    assert not left.exists() or not tree.is_extracted(name, str(left)), "what is unfinished does not look finished"
    left.unlink(missing_ok=True)
    assert sorted(archive.parent.rglob("*")) == before
    with pytest.raises(PrerequisiteError, match=re.escape(f"{archive}: {name} {reason}")), tree.open(name) as stream:
        stream.read()


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "../../evil.txt",
        "deep/../../evil.txt",
        "deep/..",
        "..",
        "../evil/",
        "/evil.txt",
        "//server/evil.txt",
        "/",
        "..\\evil.txt",
        "deep\\evil.txt",
        "\\evil.txt",
        "C:evil.txt",
        "c:/evil.txt",
        "C:\\evil.txt",
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    archive = _zip(tmp_path / "evil.zip", [("good.txt", TEXT), (name, TEXT if not name.endswith("/") else b"")])
    _assert_refused(archive, name.rstrip("/") or name, "would climb out")


@pytest.mark.parametrize("names", [["a", "a/b"], ["a/b", "a"], ["a", "x", "A/b/c"]])
def test_a_file_where_others_have_a_folder_is_refused(tmp_path: Path, names: list[str]) -> None:
    archive = _zip(tmp_path / "evil.zip", [(name, TEXT) for name in names])
    _assert_refused(archive, "a", "are in a folder of that name")


@pytest.mark.parametrize("name", ["a..b/c..txt", "...", "a/.hidden", "ab:c", "~/x", "a b/é.txt", "con"])
def test_names_that_only_look_strange_are_accepted(tmp_path: Path, place: Path, name: str) -> None:
    tree = ZipTree(_zip(tmp_path / "fine.zip", [(name, TEXT)]))
    assert tree.glob("**") == [name]
    tree.extract(name, str(place / "out"))
    assert (place / "out").read_bytes() == TEXT


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "evil.zip", [("good.txt", TEXT), ("good.txt?x", TEXT)])
    archive.write_bytes(archive.read_bytes().replace(b"good.txt?", b"good.txt\0"))
    _assert_refused(archive, "good.txt\0x", "has a name that no file can have")


@pytest.mark.parametrize("name", ["", ".", "./.", "a\0/"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    archive = _zip(tmp_path / "evil.zip", [("good.txt", TEXT), (name.replace("\0", "?"), b"")])
    archive.write_bytes(archive.read_bytes().replace(b"a?", b"a\0"))
    _assert_refused(archive, {"": "''", "./.": "."}.get(name, name), "has a name that no file can have")


@pytest.mark.parametrize("name", ["x" * 256, f"a/{'é' * 128}/b", "x/" * 2048 + "x"], ids=["name", "folder", "path"])
def test_a_name_that_no_disk_accepts_is_refused(tmp_path: Path, name: str) -> None:
    _assert_refused(_zip(tmp_path / "evil.zip", [(name, TEXT)]), name, "has a name that no disk accepts")


@both_ways
def test_dots_and_doubled_slashes_in_names_do_not_matter(tmp_path: Path, place: Path) -> None:
    """As bsdtar writes zips of the current folder."""
    members = [("./", b""), ("./a.txt", b"1"), ("./b/", b""), ("./b/c", b"2"), ("b/./d", b"3"), ("b//é", b"4")]
    tree = ZipTree(_zip(tmp_path / "fine.zip", members))
    for name, content in {"a.txt": b"1", "b/c": b"2", "b/d": b"3", "b/é": b"4"}.items():
        tree.extract(name, str(place / name.replace("/", "-")))
        assert (place / name.replace("/", "-")).read_bytes() == content
    assert tree.glob("**") == ["a.txt", "b/c", "b/d", "b/é"]


@pytest.mark.parametrize("size", [255, 4 * 255])
def test_names_of_the_maximum_length_are_read(tmp_path: Path, place: Path, size: int) -> None:
    name = "/".join(["é" * 127 + "x"] * (size // 255))
    ZipTree(_zip(tmp_path / "fine.zip", [(name, TEXT)])).extract(name, str(place / "out"))
    assert (place / "out").read_bytes() == TEXT


def test_a_folder_that_holds_bytes_is_refused(tmp_path: Path) -> None:
    _assert_refused(_zip(tmp_path / "evil.zip", [("a/", TEXT)]), "a/", "is a folder, but holds bytes")


def test_another_name_in_an_extra_field_is_not_followed(tmp_path: Path, place: Path) -> None:
    """Newer Pythons take the name from there, so an unchecked name would decide where to write."""
    info, other = _info("good.txt"), b"../evil.txt"
    info.extra = struct.pack("<HHBI", 0x7075, 5 + len(other), 1, zlib.crc32(b"good.txt")) + other
    tree = ZipTree(_zip(tmp_path / "fine.zip", [(info, TEXT)]))
    assert tree.glob("**") == ["good.txt"]
    tree.extract("good.txt", str(place / "out"))
    assert (place / "out").read_bytes() == TEXT


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    archive = _zip(tmp_path / "evil.zip", [("good.txt", TEXT), (_info("a/b", kind | 0o777), b"/etc/passwd")])
    _assert_refused(archive, "a/b", "is a link or a device")


@pytest.mark.parametrize("mode", [0, 0o644, stat.S_IFREG | 0o600, stat.S_IFREG | 0o7777])
def test_modes_of_files_do_not_matter(tmp_path: Path, place: Path, mode: int) -> None:
    tree = ZipTree(_zip(tmp_path / "fine.zip", [(_info("a.txt", mode), TEXT)]))
    tree.extract("a.txt", str(place / "a.txt"))
    assert stat.S_IMODE((place / "a.txt").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("first", "second"),
    [("a/B.txt", "A/b.txt"), ("STRASSE", "straße"), ("É", "é"), ("same", "same"), ("d/x", "D/x")]
    + [("e\u0301/x", "\u00c9/x"), ("./a", "a"), ("a/./b", "a//b")],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_for_one_name_are_refused(tmp_path: Path, first: str, second: str) -> None:
    archive = _zip(tmp_path / "evil.zip", [("good.txt", TEXT), (first, b"1"), (second, b"2")])
    _assert_refused(archive, str(PurePosixPath(second)), "has the same name as")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_folders_may_be_named_more_than_once(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "fine.zip", [("d/", b""), ("d/", b""), ("d/a", b"1"), ("d/b", b"2")])
    assert ZipTree(archive).glob("**") == ["d/a", "d/b"]


def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_checks, "BOMB_BYTES", 50_000)
    archive = _zip(tmp_path / "bomb.zip", [("good.txt", TEXT), ("bomb.bin", bytes(1_000_000))])
    _assert_refused(archive, "bomb.bin", "would unpack to far more")


def test_members_that_together_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many members that point at the same bytes: each is honest, but not all together."""
    monkeypatch.setattr(member_checks, "BOMB_BYTES", 50_000)
    monkeypatch.setattr(member_checks, "BOMB_RATIO", 20)
    members = [(f"{number:03}.bin", bytes(range(256)) * 32) for number in range(90)]
    archive = _zip(tmp_path / "bomb.zip", [("good.txt", TEXT), *members], zipfile.ZIP_STORED)
    assert ZipTree(archive).exists("good.txt")
    content = archive.read_bytes()
    central = content.index(CENTRAL)
    entries = [CENTRAL + entry for entry in content[central : content.index(b"PK\x05\x06")].split(CENTRAL)[1:]]
    first = content.index(LOCAL, 4)
    shared = [entry[:42] + struct.pack("<I", first) + entry[46:] for entry in entries[1:]]
    kept, directory = content[: content.index(LOCAL, first + 4)], b"".join([entries[0], *shared])
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 91, 91, len(directory), len(kept), 0)
    archive.write_bytes(kept + directory + end)
    with pytest.raises(PrerequisiteError, match=r"member \d\d\d\.bin would unpack to far more than the archive"):
        ZipTree(archive)


def test_small_data_that_compresses_well_is_not_a_bomb(tmp_path: Path, place: Path) -> None:
    tree = ZipTree(_zip(tmp_path / "fine.zip", [("zeros.bin", bytes(30_000_000))]))
    tree.extract("zeros.bin", str(place / "zeros.bin"))
    assert (place / "zeros.bin").read_bytes() == bytes(30_000_000)


@both_ways
@methods
def test_an_encrypted_member_is_reported_as_such(tmp_path: Path, place: Path, method: int) -> None:
    archive = _zip(tmp_path / "secret.zip", [("a.txt", TEXT), ("b.txt", TEXT)], method)
    _patch(archive, FLAGS, b"\x01")
    _assert_unreadable(archive, place, reason="is encrypted")
    ZipTree(archive).extract("b.txt", str(place / "b.txt"))
    assert (place / "b.txt").read_bytes() == TEXT


def _cut(path: Path, removed: int) -> None:
    """Take bytes out of the last member and keep the directory in order."""
    content = path.read_bytes()
    central = content.index(CENTRAL)
    end = content.index(b"PK\x05\x06")
    offset = struct.unpack_from("<I", content, end + 16)[0] - removed
    tail = content[central:end] + content[end : end + 16] + struct.pack("<I", offset) + content[end + 20 :]
    path.write_bytes(content[: central - removed] + tail)


@both_ways
@methods
@pytest.mark.parametrize("removed", [5, 20])
def test_a_truncated_member_is_reported_as_such(tmp_path: Path, place: Path, method: int, removed: int) -> None:
    archive = _zip(tmp_path / "cut.zip", [("a.txt", TEXT)], method)
    _cut(archive, removed)
    _assert_unreadable(archive, place)


@both_ways
@methods
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (CRC, b"\x00\x00\x00\x00"),
        (SIZE, struct.pack("<I", len(TEXT) - 1)),
        (SIZE, struct.pack("<I", 0)),
        (SIZE, struct.pack("<I", len(TEXT) + 1)),
        (SIZE, struct.pack("<I", len(TEXT) + 100_000)),
        (PACKED, struct.pack("<I", 0)),
        (PACKED, struct.pack("<I", 9)),
        (HEADER_OFFSET, struct.pack("<I", 3)),
        (HEADER_OFFSET, struct.pack("<I", 10_000)),
        ({LOCAL: 0}, b"XX"),
        ({LOCAL: 26}, b"\xff\xff"),
        ({LOCAL: 28}, b"\xff\xff"),
        ({LOCAL: 26}, b"\x00\x00"),
        ({LOCAL: 30}, b"b"),
    ],
    ids=lambda value: repr(value) if isinstance(value, bytes) else "+".join(map(str, value.values())),
)
def test_a_member_that_contradicts_the_directory_is_reported_as_such(
    tmp_path: Path, place: Path, method: int, field: dict[bytes, int], value: bytes
) -> None:
    archive = _zip(tmp_path / "bad.zip", [("a.txt", TEXT)], method)
    _patch(archive, field, value)
    _assert_unreadable(archive, place)


@both_ways
@methods
def test_a_member_that_begins_inside_another_is_reported_as_such(tmp_path: Path, place: Path, method: int) -> None:
    """The directory points at the other member's bytes; sizes and checksum do not give it away."""
    archive = _zip(tmp_path / "bad.zip", [("a.txt", TEXT), ("b.txt", TEXT)], method)
    _patch(archive, HEADER_OFFSET, struct.pack("<I", 0), member=1)
    _assert_unreadable(archive, place, "b.txt")


@both_ways
@pytest.mark.parametrize("field", [PACKED, HEADER_OFFSET], ids=["size", "place"])
def test_a_member_out_of_bounds_is_reported_as_such(tmp_path: Path, place: Path, field: dict[bytes, int]) -> None:
    info = _info("a.txt")
    info.extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    archive = _zip(tmp_path / "bad.zip", [(info, TEXT)], zipfile.ZIP_STORED)
    _patch(archive, field, b"\xff" * 4)
    _assert_unreadable(archive, place)


@both_ways
def test_an_archive_without_its_beginning_is_reported_as_such(tmp_path: Path, place: Path) -> None:
    archive = _zip(tmp_path / "bad.zip", [("a.txt", TEXT), ("b.txt", TEXT)], zipfile.ZIP_STORED)
    archive.write_bytes(archive.read_bytes()[1000:])
    _assert_unreadable(archive, place)
    ZipTree(archive).extract("b.txt", str(place / "b.txt"))
    assert (place / "b.txt").read_bytes() == TEXT


@both_ways
@pytest.mark.parametrize(
    "method",
    [
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        *(pytest.param(rare, marks=pytest.mark.full) for rare in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
    ],
    ids=str,
)
def test_no_damage_goes_unnoticed(tmp_path: Path, place: Path, method: int) -> None:
    """A different bit changed in each byte, and the archive cut off at each place, at the front and at the end."""
    files, chance = {"a/b.txt": b"abc" * 20, "empty": b"", "z.csv": b"a,b\n1,2\n"}, random.Random(0)
    archive = _zip(tmp_path / "bad.zip", list(files.items()), method)
    content, refused = archive.read_bytes(), []
    for at in range(len(content)):
        changed = content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
        for damaged in (changed, content[:at], content[at + 1 :]):
            archive.write_bytes(damaged)
            found = _unless_refused(archive, place)
            assert found in (None, files)
            refused.append(found is None)
    assert sum(refused) > 0.7 * len(refused), "few bytes do not matter, such as a member's time"


def _unless_refused(archive: Path, place: Path) -> dict[str, bytes] | None:
    """Everything in an archive, extracted in both ways."""
    try:
        tree, found = ZipTree(archive), {}
        for name in tree.glob("**"):
            (place / "out").unlink(missing_ok=True)
            tree.extract(name, str(place / "out"))
            with tree.open(name) as stream:
                found[name] = stream.read()
            assert (place / "out").read_bytes() == found[name]
    except PrerequisiteError:
        return None
    return found


@pytest.mark.parametrize("length", [28, 30, 32], ids=["name", "extra field", "comment"])
def test_hidden_members_are_noticed(tmp_path: Path, length: int) -> None:
    """A length in the list of members that covers the members after it."""
    archive = _zip(tmp_path / "bad.zip", [("a.txt", TEXT), ("b.txt", TEXT)])
    _patch(archive, {CENTRAL: length}, b"\x00\xc0")
    with pytest.raises(PrerequisiteError, match=r"bad\.zip(: member| cannot be read)"):
        ZipTree(archive)


def test_an_archive_that_ends_in_zeros_does_not_count_as_empty(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "bad.zip", [("a.txt", TEXT)])
    archive.write_bytes(archive.read_bytes()[:-18] + bytes(18))
    with pytest.raises(PrerequisiteError, match="begins with a member, but lists none"):
        ZipTree(archive)


@pytest.mark.parametrize("count", [2, 3])
def test_members_are_counted_where_numbers_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    archive = _zip(tmp_path / "large.zip", [("a.txt", TEXT), ("b.txt", TEXT)])
    _patch(archive, {b"PK\x05\x06": 8}, b"\xff" * 4)
    _patch(archive, {b"PK\x06\x06": 32}, struct.pack("<Q", count))
    if count == 2:
        assert ZipTree(archive).glob("**") == ["a.txt", "b.txt"]
        return
    with pytest.raises(PrerequisiteError, match=r"cannot be read \(it says that it holds 3 members, but lists 2\)"):
        ZipTree(archive)


@pytest.mark.parametrize("said", [1, 0xFFFF])
def test_a_count_that_overflows_two_bytes_is_not_damage(tmp_path: Path, said: int) -> None:
    """As some programs write archives of more than 65,535 members."""
    names = [b"%05d" % number for number in range(0x10001)]
    fields = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, 0, 0, 0, 5, 0)
    members = b"".join(LOCAL + fields + name for name in names)
    directory = b"".join(
        CENTRAL + b"\x14\0" + fields + struct.pack("<3H2I", 0, 0, 0, 0, 35 * at) + name for at, name in enumerate(names)
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, said, said, len(directory), len(members), 0)
    (tmp_path / "fine.zip").write_bytes(members + directory + end)
    assert len(ZipTree(tmp_path / "fine.zip").glob("*")) == len(names)


def test_an_archive_that_is_refused_is_closed(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "evil.zip", [("../evil", TEXT)])
    with pytest.raises(PrerequisiteError) as caught:
        ZipTree(archive)
    assert archive.resolve() not in [path.resolve() for path in Path("/dev/fd").iterdir()], caught.value


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all", b"PK\x05\x06" + bytes(10)])
def test_anything_but_an_archive_is_reported_as_such(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.zip").write_bytes(content)
    with pytest.raises(PrerequisiteError, match=r"no\.zip cannot be read"):
        ZipTree(tmp_path / "no.zip")


def test_an_empty_archive_holds_nothing(tmp_path: Path) -> None:
    tree = ZipTree(_zip(tmp_path / "empty.zip", []))
    assert tree.glob("**") == []
    with pytest.raises(PrerequisiteError, match="lacks a"):
        tree.open("a")


def test_a_member_takes_little_more_memory_than_its_name(tmp_path: Path) -> None:
    count = 3000
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in reversed(range(count)):
            archive.writestr(f"train/{number % 7}/{number:012}.png", b"x" * (number % 5))
    tracemalloc.start()
    tree = ZipTree(tmp_path / "many.zip")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / count < 220
    names = sorted(f"train/{number % 7}/{number:012}.png" for number in range(count))
    assert tree.glob("**") == names
    assert [tree.size(name) for name in names] == [int(name[-16:-4]) % 5 for name in names]
    assert not tree.exists(f"{names[-1]}x")


@both_ways
@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
@pytest.mark.parametrize("content", [b"", b"x", TEXT], ids=["empty", "one", "text"])
def test_members_are_unpacked_whatever_their_method(tmp_path: Path, place: Path, method: int, content: bytes) -> None:
    tree = ZipTree(_zip(tmp_path / "fine.zip", [("a.txt", content), ("é/b.txt", content)], method))
    for number, name in enumerate(("a.txt", "é/b.txt")):
        tree.extract(name, str(place / f"{number}"))
        assert (place / f"{number}").read_bytes() == content
        with tree.open(name) as stream:
            assert stream.read() == content


@both_ways
@pytest.mark.parametrize("at", [35, 50, 2000])
@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
def test_damage_is_noticed_whatever_the_method(tmp_path: Path, place: Path, method: int, at: int) -> None:
    content = b"".join(hashlib.md5(bytes([number])).digest() for number in range(256))
    archive = _zip(tmp_path / "bad.zip", [("a.txt", content)], method)
    damaged = bytearray(archive.read_bytes())
    damaged[at : at + 10] = b"\xff" * 10
    archive.write_bytes(damaged)
    _assert_unreadable(archive, place)


@both_ways
@methods
@pytest.mark.parametrize("zip64", [False, True])
def test_archives_written_as_a_stream_and_zip64_are_read(tmp_path: Path, place: Path, method: int, zip64: bool) -> None:
    """Sizes after a member, in 32 or 64 bits, and extra fields between its header and its content."""

    class Pipe:
        """A file that cannot go back, so that sizes come after the content."""

        def __init__(self, path: Path):
            self._file = path.open("wb")
            self.write, self.flush, self.close = self._file.write, self._file.flush, self._file.close

    pipe = Pipe(tmp_path / "fine.zip")
    with zipfile.ZipFile(pipe, "w", method) as archive:
        for name in ("a.txt", "b.txt"):
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.extra = struct.pack("<HH", 0xCAFE, 300) + bytes(300)
            with archive.open(info, "w", force_zip64=zip64) as stream:
                stream.write(TEXT)
    pipe.close()
    tree = ZipTree(tmp_path / "fine.zip")
    for name in ("a.txt", "b.txt"):
        tree.extract(name, str(place / name))
        assert (place / name).read_bytes() == TEXT


def test_an_archive_after_other_bytes_is_read(tmp_path: Path, place: Path) -> None:
    """As a self-extracting archive is built: all offsets are off by the same number."""
    archive = _zip(tmp_path / "fine.zip", [("a.txt", TEXT)])
    archive.write_bytes(b"#!/bin/sh\n" + archive.read_bytes())
    ZipTree(archive).extract("a.txt", str(place / "a.txt"))
    assert (place / "a.txt").read_bytes() == TEXT


@both_ways
def test_many_threads_at_once_get_the_right_bytes(tmp_path: Path, place: Path) -> None:
    contents = {f"{number}.bin": (b"%d," % number) * (number * 37 % 4000 + 1) for number in range(200)}
    tree = ZipTree(_zip(tmp_path / "fine.zip", list(contents.items())))

    def extract(name: str) -> bool:
        tree.extract(name, str(place / name))
        with tree.open(name) as stream:
            return (place / name).read_bytes() == contents[name] == stream.read()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(extract, contents))


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt"])
def test_an_inner_archive_is_checked_too(tmp_path: Path, place: Path, name: str) -> None:
    inner = _zip(tmp_path / "inner.zip", [("good.txt", TEXT), (name, TEXT)]).read_bytes()
    outer = _zip(tmp_path / "outer.zip", [("inner.zip", inner)])
    with open_raw(outer, place) as raw, pytest.raises(PrerequisiteError, match="would climb out"):
        raw.archive("inner.zip").files("**")
    assert list(place.iterdir()) == []


def test_a_damaged_member_stops_a_prepare(tmp_path: Path, place: Path) -> None:
    """What is left of it does not count as finished: once the archive is repaired, the same call finishes the work."""
    archive = _zip(tmp_path / "raw.zip", [("a.txt", TEXT), ("b.txt", TEXT)], zipfile.ZIP_STORED)
    sound = archive.read_bytes()
    _patch(archive, CRC, b"\x00\x00\x00\x00", member=1)

    def prepare() -> None:
        output = Output(place / "public")
        with open_raw(archive, place) as raw:
            output.place_each((file, file.name) for file in raw.files("*"))
            finish([output], place)

    with pytest.raises(PrerequisiteError, match=r"raw\.zip: b\.txt cannot be read"):
        prepare()
    archive.write_bytes(sound)
    prepare()
    assert {path.name: path.read_bytes() for path in (place / "public").iterdir()} == {"a.txt": TEXT, "b.txt": TEXT}
