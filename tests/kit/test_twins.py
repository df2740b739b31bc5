"""The tools that make twins."""

import csv
import io
import json
import math
import struct
import tarfile
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.folders import tar_members

from mlebench.kit import picture_hash
from mlebench.kit.twins import (
    TwinFolder,
    aiff_bytes,
    csv_bytes,
    dicom_bytes,
    hex_ids,
    image_bytes,
    joined,
    json_bytes,
    mp4_bytes,
    npy_bytes,
    random_hex,
    records_of,
    rounded,
    scenes_of_bursts,
    tar_gz_bytes,
    uneven_light,
    wav_bytes,
    zip_bytes,
)

pytestmark = pytest.mark.bytes

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(list('",;\r\n')), max_size=6)


def test_cells_are_written_verbatim() -> None:
    columns = {"id": ["007", "1e-05"], "n": np.array([1, 2]), "x": np.array([0.1, 1e-7]), "gap": [None, "NA"]}
    assert csv_bytes(columns) == b"id,n,x,gap\n007,1,0.1,\n1e-05,2,1e-07,NA\n"
    assert csv_bytes({"a": [1], "b": ["x"]}, sep=";", newline="\r\n", quote_text=True) == b'"a";"b"\r\n1;"x"\r\n'


@given(st.lists(st.tuples(TEXT, TEXT), max_size=6))
def test_any_text_can_be_read_back(rows: list[tuple[str, str]]) -> None:
    content = csv_bytes({"a": [row[0] for row in rows], "b": [row[1] for row in rows]}, quote_text=True)
    read = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    assert read == [["a", "b"], *map(list, rows)]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        csv_bytes({"a": [1, 2], "b": [1]})


@given(st.dictionaries(st.sampled_from(["a", "b/c", "d.zip"]), st.binary(max_size=50)))
def test_archives_are_reproducible_and_keep_the_order_given(members: dict[str, bytes]) -> None:
    content = zip_bytes(members)
    assert content == zip_bytes(members)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == members
        assert archive.namelist() == list(members)


@given(st.dictionaries(st.sampled_from(["a", "b/c", "é"]), st.binary(max_size=50)))
def test_tar_archives_are_reproducible_and_keep_the_order_given(members: dict[str, bytes]) -> None:
    content = tar_gz_bytes(members)
    assert content == tar_gz_bytes(members)
    assert content[:10].hex() == "1f8b08000000000004ff", "Python's gzip functions do not all write the same header"
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        assert tar_members(archive) == list(members.items())


def test_columns_become_records_of_plain_values() -> None:
    records = records_of({"n": np.array([1, 2]), "t": ["a", None], "x": range(2)})
    assert records == [{"n": 1, "t": "a", "x": 0}, {"n": 2, "t": None, "x": 1}]
    assert type(records[0]["n"]) is int


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_images_are_real_ones(shape: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape)
    with Image.open(io.BytesIO(image_bytes(pixels, "PNG"))) as image:
        assert image.size == (7, 5)
        assert (np.asarray(image) == pixels).all()
    with Image.open(io.BytesIO(image_bytes(pixels, "JPEG"))) as image:
        assert image.format == "JPEG"


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_images_may_have_sixteen_bits(format: str) -> None:
    pixels = np.arange(65500, 65535).reshape(5, 7).astype(np.uint16)
    with Image.open(io.BytesIO(image_bytes(pixels, format))) as image:
        assert (np.asarray(image) == pixels).all()


@pytest.mark.parametrize("kind", [np.float16, np.int64])
def test_arrays_are_real_ones(kind: type) -> None:
    values = np.arange(24).reshape(2, 3, 4).astype(kind)
    read = np.load(io.BytesIO(npy_bytes(values)))
    assert read.dtype == kind
    assert (read == values).all()


def test_sounds_are_real_ones() -> None:
    samples = np.array([0, 1, -1, 32767, -32768, 258])
    with wave.open(io.BytesIO(wav_bytes(samples, rate=16_000))) as sound:
        assert sound.getparams()[:4] == (1, 2, 16_000, len(samples))
        assert np.frombuffer(sound.readframes(10), "<i2").tolist() == samples.tolist()


@pytest.mark.parametrize("rate", [1, 2_000, 44_100, 65_536])
def test_sounds_of_the_other_format_are_real_ones(rate: int) -> None:
    samples = np.array([0, 1, -1, 32767, -32768, 258])
    content = aiff_bytes(samples, rate)
    assert struct.unpack_from(">4sI4s", content) == (b"FORM", len(content) - 8, b"AIFF")
    kind, size, channels, frames, bits, exponent, fraction = struct.unpack_from(">4sIhIhHQ", content, 12)
    assert (kind, size, channels, frames, bits) == (b"COMM", 18, 1, len(samples), 16)
    assert math.ldexp(fraction, exponent - 16383 - 63) == rate
    assert fraction >> 63, "a float of 80 bits has its leading one written out"
    assert struct.unpack_from(">4sIII", content, 38) == (b"SSND", 8 + 2 * len(samples), 0, 0)
    assert np.frombuffer(content[54:], ">i2").tolist() == samples.tolist()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_dicom_files_are_real_ones(kind: type) -> None:
    pixels = np.arange(250, 265).reshape(3, 5).astype(kind)
    given = {0x00080016: ("UI", "1.2.840.4"), 0x00080018: ("UI", "1.2.3"), 0x00100020: ("LO", "00002")}
    content = dicom_bytes(pixels, given)
    assert content[:132] == bytes(128) + b"DICM"
    read = _dicom_elements(content[132:])
    assert list(read) == sorted(read), "tags ascend"
    assert all(len(value) % 2 == 0 for value in read.values())
    meta = content[132 + 12 :][: struct.unpack("<I", read[0x00020000])[0]]
    assert list(_dicom_elements(meta)) == [0x00020001, 0x00020002, 0x00020003, 0x00020010]
    assert read[0x00020010].rstrip(b"\0") == b"1.2.840.10008.1.2.1", "what this reader takes for granted"
    assert read[0x00020002] == read[0x00080016] == b"1.2.840.4\0"
    assert read[0x00020003] == read[0x00080018] == b"1.2.3\0"
    assert read[0x00100020] == b"00002 "
    assert struct.unpack("<HHH", read[0x00280010] + read[0x00280011] + read[0x00280100]) == (3, 5, 8 * pixels.itemsize)
    assert read[0x7FE00010][: pixels.nbytes] == pixels.tobytes()


def test_dicom_files_may_have_colours() -> None:
    pixels = np.arange(18).reshape(3, 2, 3).astype(np.uint8)
    content = dicom_bytes(pixels, {0x00080016: ("UI", "1.2.840.4"), 0x00080018: ("UI", "1.2.3")})
    read = _dicom_elements(content[132:])
    assert list(read) == sorted(read), "tags ascend"
    assert struct.unpack("<HHHH", b"".join(read[0x00280000 + n] for n in (0x02, 0x06, 0x10, 0x11))) == (3, 0, 3, 2)
    assert read[0x00280004] == b"RGB "
    assert read[0x7FE00010] == pixels.tobytes()


def _dicom_elements(content: bytes) -> dict[int, bytes]:
    elements, at = {}, 0
    while at < len(content):
        group, number, kind, length = struct.unpack_from("<HH2sH", content, at)
        at += 8
        if kind in (b"OB", b"OW"):
            (length,) = struct.unpack_from("<I", content, at)
            at += 4
        elements[group << 16 | number] = content[at : at + length]
        at += length
    return elements


@pytest.mark.parametrize(("size", "count"), [(0.001, 2), (0.5, 50), (1, 100), (2.5, 250), (1000, 100_000)])
def test_counts_follow_the_size(tmp_path: Path, size: float, count: int) -> None:
    twin = TwinFolder(tmp_path, size=size)
    assert twin.count(100) == count
    assert twin.count(100, least=7) == max(7, count)


def test_hexadecimal_ids_are_different_and_some_read_like_numbers() -> None:
    ids = hex_ids(np.random.RandomState(0), 2000, digits=9)
    assert len(set(ids)) == len(ids) == 2000
    assert all(len(id) == 9 and int(id, 16) >= 0 for id in ids)
    assert ids != sorted(ids)
    assert any(id.isdigit() and id.startswith("0") for id in ids)
    assert ids == hex_ids(np.random.RandomState(0), 2000, digits=9)


@pytest.mark.parametrize("digits", [12, 16, 40])
def test_random_hexadecimal_texts_have_their_number_of_digits(digits: int) -> None:
    texts = random_hex(np.random.RandomState(0), 25, digits)
    assert len(set(texts)) == len(texts) == 25
    assert all(len(text) == digits and int(text, 16) >= 0 for text in texts)
    assert texts == random_hex(np.random.RandomState(0), 25, digits)
    assert random_hex(np.random.RandomState(0), 0, digits) == []


def test_words_are_joined_to_texts_of_given_lengths() -> None:
    assert joined(["a", "b", "c", "d"], np.array([1, 0, 3])) == ["a", "", "b c d"]
    assert joined(np.array(["a", "b"]), np.array([2]), sep="") == ["ab"]
    assert joined([], np.array([], dtype=int)) == []


def test_a_seed_fixes_all_randomness(tmp_path: Path) -> None:
    def draw(seed: int) -> list[Any]:
        return rounded(TwinFolder(tmp_path, seed=seed).rng.rand(5)).tolist()

    assert draw(3) == draw(3) != draw(4)
    assert all(len(repr(value)) <= 8 for value in draw(3))


def test_files_are_written_where_they_belong(tmp_path: Path) -> None:
    twin = TwinFolder(tmp_path / "raw")
    twin.write("a/b.bin", b"\x00")
    twin.write_csv("t.csv", {"n": [1]}, newline="\r\n")
    twin.write_zip("z.zip", {"x": b"y"})
    twin.set_scaled(9914, 12)
    assert (tmp_path / "raw/a/b.bin").read_bytes() == b"\x00"
    assert (tmp_path / "raw/t.csv").read_bytes() == b"n\r\n1\r\n"
    assert (tmp_path / "raw/z.zip").read_bytes() == zip_bytes({"x": b"y"})
    assert twin.scaled == {9914: 12}
    assert json.loads(json_bytes({"é": [1]})) == {"é": [1]}


def test_a_video_is_made_of_boxes_that_locate_its_frames() -> None:
    frames = [image_bytes(np.full((8, 16), grey), "JPEG") for grey in (10, 200)]
    content = mp4_bytes(frames, width=16, height=8)
    boxes = _boxes(content)
    assert list(boxes) == [b"ftyp", b"mdat", b"moov"]
    assert boxes[b"mdat"] == b"".join(frames)
    track = _boxes(_boxes(boxes[b"moov"])[b"trak"])
    samples = _boxes(_boxes(_boxes(track[b"mdia"])[b"minf"])[b"stbl"])
    assert struct.unpack(">8xIII", samples[b"stsz"]) == (2, *map(len, frames))
    (start,) = struct.unpack(">8xI", samples[b"stco"])
    assert content[start:].startswith(frames[0])
    assert struct.unpack(">76xII", track[b"tkhd"]) == (16 << 16, 8 << 16)


def _boxes(content: bytes) -> dict[bytes, bytes]:
    boxes = {}
    while content:
        size, kind = struct.unpack(">I4s", content[:8])
        boxes[kind], content = content[8:size], content[size:]
    return boxes


@given(st.lists(st.sampled_from("abc"), max_size=40), st.floats(0, 1), st.integers(0, 99))
def test_pictures_of_a_scene_have_one_label_and_follow_each_other(labels: list[str], share: float, seed: int) -> None:
    scenes = scenes_of_bursts(np.random.RandomState(seed), labels, share)
    assert len({*zip(scenes, labels, strict=True)}) == len({*scenes})
    assert [*dict.fromkeys(scenes)] == [*range(len({*scenes}))]
    for label in labels:  # a scene is over when the next one with its label begins
        of_label = [scene for scene, its in zip(scenes, labels, strict=True) if its == label]
        assert of_label == sorted(of_label)


def test_a_share_of_pictures_repeats_a_scene() -> None:
    scenes = scenes_of_bursts(np.random.RandomState(0), [0] * 5000, 0.6)
    assert len({*scenes}) / 5000 == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("size", [(16, 18), (30, 17), (40, 24), (64, 100)])
def test_a_picture_in_uneven_light_keeps_its_hash_as_a_brighter_jpeg_file(size: tuple[int, int]) -> None:
    rng = np.random.RandomState(0)
    hashes = set()
    for _ in range(50):
        scene = 128 + rng.randint(-4, 5, (*size, 3)) + uneven_light(rng, *size)
        files = [image_bytes(scene + brighter, "JPEG") for brighter in (-3, 0, 3)]
        (hash,) = {picture_hash(np.asarray(Image.open(io.BytesIO(file)).convert("L"))) for file in files}
        hashes.add(hash)
    assert len(hashes) == 50
