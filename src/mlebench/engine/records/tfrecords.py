"""TFRecord files of `tf.train.Example`s, read and (for twins) written without TensorFlow."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import BinaryIO

Example = Mapping[str, bytes | int | float]  # a feature of one value, in the list of its kind
_BYTES, _FLOATS, _INTEGERS = 1, 2, 3  # fields of a Feature


def tfrecord_values(stream: BinaryIO, feature: str) -> list[bytes]:
    """The first bytes value of a feature, from every `tf.train.Example` of a TFRecord file."""
    return [_example_feature(record, feature) for record in tfrecords(stream)]


def tfrecords(stream: BinaryIO) -> Iterator[bytes]:
    """The records of a TFRecord file: each is framed by its length and two checksums, which are not checked."""
    while header := stream.read(12):
        (length,) = struct.unpack("<Q", header[:8].ljust(8, b"\0"))
        record = stream.read(length)
        if len(header) < 12 or len(record) < length or len(stream.read(4)) < 4:
            raise ValueError("a TFRecord file ends in the middle of a record")
        yield record


def tfrecord_bytes(examples: Sequence[Example]) -> bytes:
    """A TFRecord file with a record for each example, and the checksums that TensorFlow asks for."""
    pieces = []
    for example in examples:
        entries = (_field(1, _field(1, name.encode()) + _field(2, _feature(value))) for name, value in example.items())
        record = _field(1, b"".join(entries))
        length = struct.pack("<Q", len(record))
        pieces += length, masked_checksum(length), record, masked_checksum(record)
    return b"".join(pieces)


def _example_feature(record: bytes, feature: str) -> bytes:
    # Example{1: Features{1: map entry{1: key, 2: Feature{1: BytesList{1: values}}}}}
    for features in _fields(record, 1):
        for entry in _fields(features, 1):
            if feature.encode() in _fields(entry, 1):
                for value in _path(entry, 2, 1, 1):
                    return value
    raise ValueError(f"a record has no feature {feature!r} that holds bytes")


def _path(message: bytes, *numbers: int) -> Iterator[bytes]:
    """The fields that these numbers lead to, message by message."""
    if not numbers:
        yield message
    else:
        for field in _fields(message, numbers[0]):
            yield from _path(field, *numbers[1:])


def _fields(message: bytes, number: int) -> Iterator[bytes]:
    """The length-delimited fields with this number, of a protobuf message."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 2:
            length, place = _varint(message, place)
            if key >> 3 == number:
                yield message[place : place + length]
            place += length
        elif kind == 0:
            _, place = _varint(message, place)
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a protobuf message has a field of unknown kind {kind}")


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _feature(value: bytes | int | float) -> bytes:
    if isinstance(value, bytes):
        return _field(_BYTES, _field(1, value))
    if isinstance(value, int):
        return _field(_INTEGERS, _field(1, _encoded_varint(value % 2**64)))
    return _field(_FLOATS, _field(1, struct.pack("<f", value)))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return _encoded_varint(number << 3 | 2) + _encoded_varint(len(content)) + content


def _encoded_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def masked_checksum(content: bytes) -> bytes:
    """CRC-32C, rotated and shifted: otherwise a checksum over bytes that contain checksums is of little use."""
    crc, table = 0xFFFFFFFF, _crc_table()
    for byte in content:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


@cache
def _crc_table() -> list[int]:
    """What each byte does to the checksum; the polynomial is Castagnoli's, its bits in reverse."""
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table
