"""TFRecord files, built here byte by byte."""

import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.errors import RawDataError
from mlebench.engine.records.tfrecords import (
    masked_checksum,
    select_tfrecords,
    tfrecord_bytes,
    tfrecord_values,
    tfrecords,
)
from mlebench.kit import open_raw

pytestmark = pytest.mark.bytes


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _bytes_feature(*values: bytes) -> bytes:
    return _field(1, b"".join(_field(1, value) for value in values))


def _int_feature(*values: int) -> bytes:
    return _field(3, b"".join(_varint(1 << 3) + _varint(value) for value in values))


def _float_feature(*values: float) -> bytes:
    return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))


def _example(**features: bytes) -> bytes:
    entries = (_field(1, name.encode()) + _field(2, feature) for name, feature in features.items())
    return _field(1, b"".join(_field(1, entry) for entry in entries))


def _framed(*records: bytes) -> bytes:
    return b"".join(struct.pack("<Q", len(record)) + b"crc1" + record + b"crc2" for record in records)


RECORDS = _framed(
    _example(target=_int_feature(300), image=_bytes_feature(b"\x00" * 5000), image_name=_bytes_feature(b"ISIC_1")),
    _example(image_name=_bytes_feature(b"ISIC_2", b"second"), weight=_float_feature(0.5, 2)),
)


def test_a_feature_is_found_among_others_of_every_kind() -> None:
    assert tfrecord_values(io.BytesIO(RECORDS), "image_name") == [b"ISIC_1", b"ISIC_2"]


def test_unknown_fields_of_every_kind_are_skipped() -> None:
    extra = _varint(9 << 3) + _varint(2**40) + _varint(10 << 3 | 1) + b"8 bytes." + _varint(11 << 3 | 5) + b"four"
    record = extra + _example(id=_bytes_feature(b"x")) + extra
    assert tfrecord_values(io.BytesIO(_framed(record)), "id") == [b"x"]


@given(st.lists(st.binary(max_size=400), max_size=5))
def test_records_come_back_as_they_were_framed(records: list[bytes]) -> None:
    assert list(tfrecords(io.BytesIO(_framed(*records)))) == records
    examples = [_example(other=_bytes_feature(b"no"), it=_bytes_feature(record)) for record in records]
    assert tfrecord_values(io.BytesIO(_framed(*examples)), "it") == records


@pytest.mark.parametrize("cut", [1, 5, 8, 11, 12, 13, 40, -1, -4])
def test_a_file_that_ends_inside_a_record_is_reported(cut: int) -> None:
    with pytest.raises(ValueError, match="ends in the middle"):
        tfrecord_values(io.BytesIO(RECORDS[:cut]), "image_name")


@pytest.mark.parametrize("record", [_example(other=_bytes_feature(b"x")), _example(id=_int_feature(1)),
                                    _example(id=_bytes_feature()), b""])  # fmt: skip
def test_a_record_without_the_feature_is_reported(record: bytes) -> None:
    with pytest.raises(ValueError, match="no feature 'id'"):
        tfrecord_values(io.BytesIO(_framed(record)), "id")


def test_written_examples_match_hand_built_ones() -> None:
    content = tfrecord_bytes([{"image_name": b"ISIC_1", "target": 300, "sex": -1, "weight": 0.5}, {}])
    first = _example(
        image_name=_bytes_feature(b"ISIC_1"),
        target=_field(3, _field(1, _varint(300))),  # numbers are packed, as TensorFlow writes them
        sex=_field(3, _field(1, _varint(2**64 - 1))),
        weight=_float_feature(0.5),
    )
    assert list(tfrecords(io.BytesIO(content))) == [first, _example()]


@given(st.lists(st.dictionaries(st.text(), st.binary() | st.integers(-(2**63), 2**63 - 1) | st.floats(width=32))))
def test_written_examples_can_be_read_back(examples: list[dict[str, bytes | int | float]]) -> None:
    named = [example | {"id": str(number).encode()} for number, example in enumerate(examples)]
    content = tfrecord_bytes(named)
    assert len(list(tfrecords(io.BytesIO(content)))) == len(examples)
    assert tfrecord_values(io.BytesIO(content), "id") == [example["id"] for example in named]


@pytest.mark.parametrize(
    ("content", "crc"),  # the examples of RFC 3720, B.4, and the usual one
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_checksums_are_masked_crc32c(content: bytes, crc: int) -> None:
    (masked,) = struct.unpack("<I", masked_checksum(content))
    turned = (masked - 0xA282EAD8) % 2**32
    assert (turned >> 17 | turned << 15) % 2**32 == crc


def test_each_record_has_a_checksum_of_its_length_and_one_of_itself() -> None:
    content = tfrecord_bytes([{"id": b"x"}])
    length, body = content[:8], content[12:-4]
    assert content == length + masked_checksum(length) + body + masked_checksum(body)


def test_raw_files_give_the_text_of_a_feature(tmp_path: Path) -> None:
    (tmp_path / "a.tfrec").write_bytes(tfrecord_bytes([{"id": "é".encode()}, {"id": b"2"}]))
    with open_raw(tmp_path) as raw:
        assert raw.tfrecord_values("a.tfrec", "id") == ["é", "2"]


@given(st.lists(st.tuples(st.booleans(), st.binary(), st.integers(0, 300)), max_size=6))
def test_selected_records_have_the_kept_features_and_no_others(pictures: list[tuple[bool, bytes, int]]) -> None:
    examples: list[dict[str, bytes | int | float]] = [
        {"image": image, "id": str(number).encode(), "target": target, "age": 0.5}
        for number, (_, image, target) in enumerate(pictures)
    ]
    content = io.BytesIO(tfrecord_bytes(examples))
    wanted = [example for example, (chosen, _, _) in zip(examples, pictures, strict=True) if chosen]
    ids = {str(number).encode() for number, (chosen, _, _) in enumerate(pictures) if chosen}
    assert b"".join(select_tfrecords(content, "id", ids)) == tfrecord_bytes(wanted)
    content.seek(0)
    reduced = [{"image": example["image"], "id": example["id"]} for example in wanted]
    assert b"".join(select_tfrecords(content, "id", ids, ["id", "image", "width"])) == tfrecord_bytes(reduced)


def test_nothing_outside_the_features_stays_in_a_reduced_record() -> None:
    hidden = _field(9, b"melanoma")
    record = hidden + _example(id=_bytes_feature(b"x"), target=_int_feature(1)) + hidden
    (reduced,) = select_tfrecords(io.BytesIO(_framed(record)), "id", {b"x"}, ["id"])
    assert list(tfrecords(io.BytesIO(reduced))) == [_example(id=_bytes_feature(b"x"))]


def test_a_damaged_file_is_named_while_its_records_are_selected(tmp_path: Path) -> None:
    (tmp_path / "a.tfrec").write_bytes(tfrecord_bytes([{"id": b"1"}, {"id": b"2"}])[:-1])
    with open_raw(tmp_path) as raw, pytest.raises(RawDataError, match=r"a\.tfrec cannot be read .*in the middle"):
        list(raw.select_tfrecords("a.tfrec", "id", ["2"]))
