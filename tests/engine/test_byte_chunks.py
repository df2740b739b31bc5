"""Large texts: blocks of lines are what Python reads in text mode; pieces are written as if they were one."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.engine import byte_chunks
from mlebench.kit import ByteChunks, Output, Raw, md5_of, open_raw
from mlebench.kit.outputs import finish, run_prepare
from mlebench.kit.twins import image_bytes, zip_bytes

pytestmark = pytest.mark.bytes

TEXT = st.text(st.sampled_from("a é\u2028\x85\x1c\n\r"), max_size=60).map(str.encode)


@given(TEXT, st.integers(1, 9))
def test_blocks_of_lines_are_what_python_reads(content: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_chunks, "LINES_BYTES", size)
        blocks = list(byte_chunks.line_blocks(io.BytesIO(content)))
    assert all(blocks)
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    with io.TextIOWrapper(io.BytesIO(content), "utf-8") as stream:
        lines = list(stream)
    assert [line for block in blocks for line in io.StringIO(block.decode(), newline="\n")] == lines


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_pieces_read_as_one_file(pieces: list[bytes], size: int) -> None:
    made = ByteChunks(lambda: pieces)
    for _ in range(2):
        with made.open() as stream:
            read = b"".join(iter(lambda: stream.read(size), b""))
        assert read == b"".join(made) == b"".join(pieces)


def _countdown() -> Iterator[bytes]:
    yield b"count\n"
    yield from (b"%d\n" % number for number in range(300_000, 0, -1))


def test_pieces_are_made_when_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    begun = []

    def pieces() -> Iterator[bytes]:
        begun.append(1)
        yield from _countdown()

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.write_pieces("count.csv", ByteChunks(pieces))
        private.pack("count.zip", {"count.csv": ByteChunks(pieces), "a.txt": b"a"}, deflate=True)
        assert not begun

    facts = dict(run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private"))
    content = b"".join(_countdown())
    assert (tmp_path / "public/count.csv").read_bytes() == content
    assert facts["public/count.csv"] == {"size": len(content), "md5": md5_of(tmp_path / "public/count.csv")}
    with zipfile.ZipFile(tmp_path / "private/count.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a.txt": b"a", "count.csv": content}
    assert len(begun) == 2


def test_a_failed_write_starts_over(tmp_path: Path) -> None:
    fails = [True]

    def pieces() -> Iterator[bytes]:
        yield b"one "
        if fails:
            fails.clear()
            raise OSError("the disk is full")
        yield b"two"

    output = Output(tmp_path / "public")
    output.write_pieces("text", ByteChunks(pieces))
    with pytest.raises(OSError, match="full"):
        finish([output], tmp_path)
    output = Output(tmp_path / "public")
    output.write_pieces("text", ByteChunks(pieces))
    finish([output], tmp_path)
    assert (tmp_path / "public/text").read_bytes() == b"one two"
    with pytest.raises(ValueError, match="written twice"):
        output.write_pieces("text", ByteChunks(pieces))


def test_a_tar_needs_sizes_beforehand(tmp_path: Path) -> None:
    output = Output(tmp_path / "public")
    output.pack("a.tar", {"a": ByteChunks(_countdown)})
    with pytest.raises(ValueError, match="not known beforehand"):
        finish([output], tmp_path)


def test_grey_pixels_of_an_image_in_an_archive(tmp_path: Path) -> None:
    grey = np.random.RandomState(0).randint(0, 256, (5, 7))
    colours = np.zeros((2, 3, 3), dtype=np.uint8)
    colours[:, 1] = 255
    images = {"grey.png": image_bytes(grey, "PNG"), "colours.png": image_bytes(colours, "PNG")}
    (tmp_path / "images.zip").write_bytes(zip_bytes(images))
    with open_raw(tmp_path / "images.zip") as raw:
        assert np.array_equal(raw.file("grey.png").grey_pixels(), grey)
        assert raw.file("colours.png").grey_pixels().tolist() == [[0, 255, 0]] * 2
        assert raw.file("grey.png").grey_pixels().dtype == np.uint8


def test_lines_of_a_file_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_chunks, "LINES_BYTES", 4)
    (tmp_path / "raw.zip").write_bytes(zip_bytes({"a.txt": b"one\r\ntwo\nthree"}))
    with open_raw(tmp_path / "raw.zip") as raw:
        assert list(raw.line_blocks("a.txt")) == [b"one\n", b"two\n", b"three"]
