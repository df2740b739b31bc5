"""After an interruption the same call continues: what is finished is kept, what is not is made again."""

import gzip
import io
import subprocess
import sys
import tarfile
import textwrap
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.folders import tar_members
from support.progress import RecordingProgress

from mlebench.core.errors import CompetitionError, PrerequisiteError, RawDataError
from mlebench.engine import trees
from mlebench.engine.archives.zip_tree import ZipTree
from mlebench.engine.csv import csv_source
from mlebench.kit import ByteChunks, Output, Raw, Table, md5_of, open_raw, split_rows
from mlebench.kit.outputs import finish, run_prepare
from mlebench.kit.raw import RawFile
from mlebench.kit.twins import zip_bytes

pytestmark = pytest.mark.bytes


class DiskFullError(Exception): ...


PICTURES = {f"images/{number:03}.png": b"%d" % number * (number + 1) for number in range(40)}
TABLE = "id,x\n" + "".join(f"{number},{number * 0.25}\n" for number in range(500))
FILES = PICTURES | {"train.csv": TABLE.encode()}


@pytest.fixture(params=["folder", "archive"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "archive":
        (tmp_path / "raw.zip").write_bytes(zip_bytes(FILES))
        return tmp_path / "raw.zip"
    for name, content in FILES.items():
        (tmp_path / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / name).write_bytes(content)
    return tmp_path / "raw"


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return tmp_path / "prepared/public"


def _note_down(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.1, seed=0)
    public.write("train.csv", train)
    public.write_json("facts.json", {"rows": len(test)})
    public.pack("all.zip", {"test.csv": test, "1.png": raw.file("images/001.png")})
    public.place_each((file, f"deep/{file.name}") for file in raw.files("images/*"))
    private.write("test.csv", test)


def _prepare(source: Path, public: Path) -> dict[str, bytes]:
    run_prepare(_note_down, source, public, public.parent / "private")
    return _contents(public.parent)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    files = {path.name: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in files.items()}


def _modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


def _looks_finished(source: Path, folder: Path) -> set[str]:
    """The placed files that the next attempt would leave alone."""
    tree = trees.FolderTree(source) if source.is_dir() else ZipTree(source)
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.png")]
    return {name for name in names if tree.is_extracted(f"images/{Path(name).name}", str(folder / name))}


def test_already_placed_files_are_left_alone(source: Path, public: Path) -> None:
    whole = _prepare(source, public)
    placed = _state(public / "deep")
    assert _prepare(source, public) == whole
    assert _state(public / "deep") == placed
    (public / "deep/images/007.png").unlink()
    assert _prepare(source, public) == whole
    again = _state(public / "deep")
    del again["007.png"], placed["007.png"]
    assert again == placed


@pytest.mark.parametrize("content", [b"", b"1", b"other bytes, longer than they were"])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_what_an_interruption_left_behind_is_made_again(source: Path, public: Path, mode: int, content: bytes) -> None:
    whole = _prepare(source, public)
    for name in ("deep/images/007.png", "train.csv", "facts.json", "all.zip"):
        (public / name).unlink()
        (public / name).write_bytes(content)
        (public / name).chmod(mode)
    assert _prepare(source, public) == whole
    assert _modes(public.parent) == {0o644}
    assert FILES["images/007.png"] == whole["public/deep/images/007.png"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_a_file_of_the_right_size_that_is_not_finished_is_made_again(source: Path, public: Path, mode: int) -> None:
    whole = _prepare(source, public)
    victim = public / "deep/images/007.png"
    victim.unlink()
    victim.write_bytes(bytes(len(FILES["images/007.png"])))
    victim.chmod(mode)
    assert _prepare(source, public) == whole


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o755, 0o444, 0o400])
def test_a_raw_file_keeps_its_mode_and_a_placed_one_can_be_written_to(tmp_path: Path, public: Path, mode: int) -> None:
    """It is linked if an agent's copy of it would be writable. Another attempt leaves it as it is."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.png").write_bytes(b"one")
    (raw / "a.png").chmod(mode)
    for _ in range(2):
        output = Output(public)
        with open_raw(raw) as opened:
            output.place(opened.file("a.png"), "a.png")
            finish([output], tmp_path)
        assert _modes(raw) == {mode}
        assert (public / "a.png").samefile(raw / "a.png") == bool(mode & 0o200)
        assert _modes(public) == {mode if mode & 0o200 else 0o644}
        assert (public / "a.png").read_bytes() == b"one"


def test_a_link_to_a_raw_file_that_became_read_only_is_replaced_by_a_copy(tmp_path: Path, public: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.png").write_bytes(b"one")
    for _ in range(2):
        output = Output(public)
        with open_raw(raw) as opened:
            output.place(opened.file("a.png"), "a.png")
            finish([output], tmp_path)
        (raw / "a.png").chmod(0o444)
    assert (_modes(raw), _modes(public)) == ({0o444}, {0o644})


@pytest.mark.parametrize("after", [0, 1, 25])
def test_an_error_while_placing_leaves_no_half_file(
    source: Path, public: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a full disk: some bytes of a file are written, then no more."""
    left = [after]
    originals = {kind: kind.extract for kind in (ZipTree, trees.FolderTree)}

    def extract(tree: Any, name: str, destination: str, report: Any) -> None:
        if not left[0]:
            with trees.create(destination) as stream:
                stream.write(FILES[name][:1])
                raise DiskFullError
        left[0] -= 1
        originals[type(tree)](tree, name, destination, report)

    with monkeypatch.context() as patch:
        patch.setattr(ZipTree, "extract", extract)
        patch.setattr(trees.FolderTree, "extract", extract)
        with pytest.raises(DiskFullError):
            _prepare(source, public)
    broken = _contents(public / "deep")
    assert all(broken[name] == FILES[name] for name in _looks_finished(source, public / "deep"))
    whole = _prepare(source, public)
    assert {name.removeprefix("public/deep/"): content for name, content in whole.items() if "deep" in name} == PICTURES
    assert _modes(public.parent) == {0o644}


@pytest.mark.parametrize("stream_bytes", [0, 1 << 30], ids=["in blocks", "by pandas"])
def test_an_error_while_a_table_is_written_leaves_no_scratch(
    source: Path, public: Path, stream_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "STREAM_BYTES", stream_bytes)

    def fail(self: object, data: bytes) -> None:
        raise DiskFullError

    with monkeypatch.context() as patch:
        patch.setattr("mlebench.engine.output.folder_plan._HashingStream.write", fail)
        with pytest.raises(DiskFullError):
            _prepare(source, public)
    assert [path for path in public.parent.iterdir() if path.name not in ("public", "private")] == [], "no scratch left"
    whole = _prepare(source, public)
    assert whole["private/test.csv"].count(b"\n") == 51
    assert _modes(public.parent) == {0o644}


@pytest.mark.parametrize("moment", [1, 4, 20])
def test_a_killed_process_leaves_only_whole_files_that_look_finished(source: Path, public: Path, moment: int) -> None:
    """The process ends abruptly when a file has been written and is about to be marked as finished."""
    code = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]!r}
        from pathlib import Path
        import test_outputs
        done = []
        def dying(change):
            def die(*arguments, **options):
                done.append(1)
                if len(done) == {moment}:
                    os._exit(9)
                change(*arguments, **options)
            return die
        os.utime, os.link = dying(os.utime), dying(os.link)
        test_outputs._prepare(Path({str(source)!r}), Path({str(public)!r}))
    """)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    before, finished = _contents(public / "deep"), _looks_finished(source, public / "deep")
    assert len(finished) == moment - 1
    whole = _prepare(source, public)
    assert {name: before[name] for name in finished} == {name: whole[f"public/deep/{name}"] for name in finished}
    assert _modes(public) == {0o644}


def test_progress_reaches_what_was_announced(source: Path, public: Path) -> None:
    progress = RecordingProgress()
    run_prepare(_note_down, source, public, public.parent / "private", progress)
    amounts = [(done, total) for stage, done, total in progress.events if stage == "preparing"]
    assert amounts == sorted(amounts)
    assert amounts[-1][0] == amounts[-1][1] == amounts[0][1]


def test_a_table_may_take_rows_twice_or_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that cannot be progress apart by their number in the file are left to pandas."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train.csv").write_bytes(FILES["train.csv"])
    selections = [[3, 3, 1], [-1, 0], [-2, -1], [5], np.arange(500)[::-1]]
    written = []
    for stream_bytes in (0, 1 << 30):
        monkeypatch.setattr(csv_source, "STREAM_BYTES", stream_bytes)
        output = Output(tmp_path / f"{stream_bytes}")
        with open_raw(tmp_path / "raw") as raw:
            for number, rows in enumerate(selections):
                output.write(f"{number}.csv", raw.table("train.csv").take(rows))
            finish([output], tmp_path)
        written.append(_contents(output.plan.folder))
    assert written[0] == written[1]


def test_missing_rows_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train.csv").write_bytes(FILES["train.csv"])
    for stream_bytes in (0, 1 << 30):
        monkeypatch.setattr(csv_source, "STREAM_BYTES", stream_bytes)
        for rows in ([500], [0, 500], [500, 0]):
            output = Output(tmp_path / "public")
            fault = "row 500 is taken from a table of 500 rows"
            with open_raw(tmp_path / "raw") as raw, pytest.raises(RawDataError, match=fault):
                output.write("train.csv", raw.table("train.csv").take(rows))


TREE = {f"scans/{name}": name.encode() for name in ("1/a.dcm", "1/deep/b.dcm", "1/notes.txt", "10/c.dcm", "list.csv")}


@pytest.fixture(params=["folder", "archive"])
def scans(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "archive":
        (tmp_path / "scans.zip").write_bytes(zip_bytes(TREE))
        return tmp_path / "scans.zip"
    for name, content in TREE.items():
        (tmp_path / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / name).write_bytes(content)
    return tmp_path / "raw"


@pytest.mark.parametrize(
    ("folder", "exclude", "names"),
    [
        ("scans", (), ["1/a.dcm", "1/deep/b.dcm", "1/notes.txt", "10/c.dcm", "list.csv"]),
        ("scans/1", (), ["a.dcm", "deep/b.dcm", "notes.txt"]),
        ("scans/1", ["*.txt"], ["a.dcm", "deep/b.dcm"]),
        ("scans", ["*.txt", "1/deep/**", "list.csv"], ["1/a.dcm", "1/notes.txt", "10/c.dcm"]),
        ("scans", ["**/*.dcm"], ["1/notes.txt", "list.csv"]),
    ],
)
def test_a_folder_is_placed_completely_except_for_exclusions(
    scans: Path, tmp_path: Path, folder: str, exclude: list[str], names: list[str]
) -> None:
    target = folder.replace("scans", "test")

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.place_tree(raw, folder, target, exclude=exclude)

    facts = dict(run_prepare(prepare, scans, tmp_path / "public", tmp_path / "private"))
    assert _contents(tmp_path / "public") == {f"{target}/{name}": TREE[f"{folder}/{name}"] for name in names}
    assert facts.keys() == {f"public/{target}/{name}" for name in names}
    if scans.is_dir():
        assert all((tmp_path / "public" / target / name).samefile(scans / folder / name) for name in names)


@pytest.mark.parametrize(
    ("name", "is_linked"),
    [
        ("train/cat/1.jpg", True),
        ("test/cat/1.jpg", True),
        ("all/train/cat/1.jpg", True),
        ("train/cat/2.jpg", False),
        ("test/1.jpg", False),
        ("test/7/1.jpg", False),
    ],
)
def test_a_renamed_file_does_not_show_which_raw_file_it_was(tmp_path: Path, name: str, is_linked: bool) -> None:
    """A link has the raw file's inode number and time, and raw files are often in the order of their classes."""
    raw = tmp_path / "raw" / "train" / "cat" / "1.jpg"
    raw.parent.mkdir(parents=True)
    raw.write_bytes(b"cat")

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.place(raw.file("train/cat/1.jpg"), name)

    for _ in range(2):  # what an interrupted attempt placed is left alone
        run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private")
        placed = tmp_path / "public" / name
        assert placed.read_bytes() == b"cat"
        assert placed.samefile(raw) == (placed.stat().st_mtime_ns == raw.stat().st_mtime_ns) == is_linked


@pytest.mark.parametrize("folder", ["scans/2", "scan", "scans/list.csv"])
def test_a_missing_folder_is_named(scans: Path, tmp_path: Path, folder: str) -> None:
    with open_raw(scans) as raw, pytest.raises(PrerequisiteError, match=f"lacks {folder}/"):
        Output(tmp_path / "public").place_tree(raw, folder, "test")


def test_a_folder_whose_files_are_placed_already_is_an_error(scans: Path, tmp_path: Path) -> None:
    output = Output(tmp_path / "public")
    with open_raw(scans) as raw:
        output.place(raw.file("scans/1/a.dcm"), "test/1/a.dcm")
        output.place_tree(raw, "scans", "test")
        with pytest.raises(ValueError, match=r"test/1/a\.dcm is written twice"):
            finish([output], tmp_path)


@pytest.mark.parametrize("stream_bytes", [0, 1 << 30])
def test_the_name_of_a_table_decides_its_separator(
    tmp_path: Path, stream_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "STREAM_BYTES", stream_bytes)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.tsv").write_bytes(b'n\tt\n1\tx,y\n2\t"a\tb"\n')

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        table = raw.table("a.tsv", sep="\t")
        public.write("b.tsv", table)
        public.write("b.csv", table)
        public.pack("b.zip", {"b.tsv": table.drop("n")})

    run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    assert (tmp_path / "public/b.tsv").read_bytes() == (tmp_path / "raw/a.tsv").read_bytes()
    assert (tmp_path / "public/b.csv").read_bytes() == b'n,t\n1,"x,y"\n2,a\tb\n'
    with open_raw(tmp_path / "public/b.zip") as archive:
        assert archive.file("b.tsv").read() == b't\nx,y\n"a\tb"\n'


def _pack(source: Path, folder: Path, name: str, **options: Any) -> bytes:
    """An archive of files, bytes and a table, given in no order."""

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        members: dict[str, Table | RawFile | bytes] = {
            "z.csv": raw.table("train.csv").take([2, 0]),
            **{f"in/{file.path.name}": file for file in raw.files("images/*")[::-1]},
            "a/é.txt": b"text",
            f"{'long' * 40}/empty": b"",
        }
        public.pack(name, members, **options)

    facts = dict(run_prepare(prepare, source, folder / "public", folder / "private"))
    assert facts[f"public/{name}"]["md5"] == md5_of(folder / "public" / name)
    return (folder / "public" / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "options", "compressed"),
    [("a.tar", {}, False), ("a.tar.gz", {}, True), ("a.tgz", {}, True), ("a.tar.gz", {"format": "tar"}, False)],
)
def test_a_tar_has_sorted_members_and_no_owner_or_time(
    source: Path, tmp_path: Path, name: str, options: dict[str, Any], compressed: bool
) -> None:
    content = _pack(source, tmp_path / "one", name, **options)
    assert content == _pack(source, tmp_path / "two", name, **options)
    assert content.startswith(bytes.fromhex("1f8b08000000000002ff")) is compressed
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content) if compressed else content), mode="r:") as archive:
        infos = archive.getmembers()
        found = dict(tar_members(archive))
    assert found == {
        "z.csv": b"id,x\n2,0.5\n0,0.0\n",
        **{f"in/{name.rpartition('/')[2]}": content for name, content in PICTURES.items()},
        "a/é.txt": b"text",
        f"{'long' * 40}/empty": b"",
    }
    assert list(found) == sorted(found)
    assert {(info.mtime, info.mode, info.uid, info.gid, info.uname, info.gname) for info in infos} == {
        (0, 0o644, 0, 0, "", "")
    }
    with open_raw(tmp_path / "one/public") as raw:
        assert {file.name: file.read() for file in raw.archive(name).files("**")} == found


def test_the_format_of_an_archive_can_be_forced(source: Path, tmp_path: Path) -> None:
    assert _pack(source, tmp_path / "one", "a.tar", format="zip") == _pack(source, tmp_path / "two", "a.zip")


@pytest.mark.parametrize("name", ["all.tar.gz", "all.zip", "all.7z"])
def test_archives_inside_an_archive(source: Path, tmp_path: Path, name: str) -> None:
    pieces = ByteChunks(lambda: [b"pie", b"ces"])  # their size is not known, which a tar would need

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        sample = {"b.png": raw.file("images/001.png"), "a": b"text", "c/pieces": pieces}
        public.pack(name, {"two.zip": {"d": b""}, "one.zip": sample, "readme": b"text"})

    for folder in ("one", "two"):
        run_prepare(prepare, source, tmp_path / folder / "public", tmp_path / folder / "private")
    assert (tmp_path / "one/public" / name).read_bytes() == (tmp_path / "two/public" / name).read_bytes()
    with open_raw(tmp_path / "one/public") as raw:
        archive = raw.archive(name)
        one, two = (archive.archive(f"{inner}.zip") for inner in ("one", "two"))
        assert [file.name for file in archive.files("**")] == ["one.zip", "readme", "two.zip"]
        assert {file.name: file.read() for file in one.files("**")} == {
            "a": b"text",
            "b.png": PICTURES["images/001.png"],
            "c/pieces": b"pieces",
        }
        assert {file.name: file.read() for file in two.files("**")} == {"d": b""}


def test_an_archive_inside_an_archive_cannot_hold_a_table(source: Path, tmp_path: Path) -> None:
    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.pack("all.tar", {"one.zip": {"train.csv": raw.table("train.csv")}})  # pyright: ignore[reportArgumentType] what is tested

    with pytest.raises(CompetitionError, match=r"train\.csv in all\.tar: one\.zip must be one of"):
        run_prepare(prepare, source, tmp_path / "public", tmp_path / "private")


def test_members_of_a_tar_are_not_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for number in range(4):
        with (tmp_path / f"raw/{number}").open("wb") as stream:
            stream.truncate(40 << 20)

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.pack("all.tar", {file.name: file for file in raw.files("*")})

    tracemalloc.start()
    run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20
    with tarfile.open(tmp_path / "public/all.tar") as archive:
        assert [info.size for info in archive] == [40 << 20] * 4


def test_each_line_is_written_with_its_end(tmp_path: Path) -> None:
    public = Output(tmp_path / "public")
    public.write_lines("a/some.txt", ["é", "", "1,2"])
    public.write_lines("none.txt", [])
    finish([public], tmp_path)
    assert _contents(public.plan.folder) == {"a/some.txt": "é\n\n1,2\n".encode(), "none.txt": b""}


def test_a_folder_in_a_zip_can_be_entered_when_it_is_unpacked(tmp_path: Path) -> None:
    public = Output(tmp_path / "public")
    public.pack("some.zip", {"a/": b"", "a/b.txt": b"b"}, deflate=True)
    finish([public], tmp_path)
    with zipfile.ZipFile(public.plan.folder / "some.zip") as archive:
        modes = {info.filename: (info.is_dir(), info.external_attr >> 16) for info in archive.infolist()}
    assert modes == {"a/": (True, 0o40755), "a/b.txt": (False, 0o644)}
