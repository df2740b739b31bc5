"""TFRecord files of `tf.train.Example`s, read and (for twins) written without TensorFlow."""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import BinaryIO

Example = Mapping[str, bytes | int | float]  # a feature of one value, in the list of its kind
_BYTES, _FLOATS, _INTEGERS = 1, 2, 3  # fields of a Feature


def tfrecord_values(stream: BinaryIO, feature: str) -> list[bytes]:
    """The first bytes value of a feature, from every `tf.train.Example` of a TFRecord file."""
    return [_example_feature(record, feature) for record in tfrecords(stream)]


def tfrecords(stream: BinaryIO) -> Iterator[bytes]:
    """The records of a TFRecord file."""
    return (record for _, record, _ in _frames(stream))


def _frames(stream: BinaryIO) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Each record with what frames it: its length and a checksum, and another checksum. These are not checked."""
    while header := stream.read(12):
        (length,) = struct.unpack("<Q", header[:8].ljust(8, b"\0"))
        record = stream.read(length)
        checksum = stream.read(4)
        if len(header) < 12 or len(record) < length or len(checksum) < 4:
            raise ValueError("a TFRecord file ends in the middle of a record")
        yield header, record, checksum


def select_tfrecords(
    stream: BinaryIO, feature: str, values: Collection[bytes], kept: Collection[str] | None = None
) -> Iterator[bytes]:
    """The records whose feature has one of the values, with their frames; with `kept`, with these features only."""
    names = None if kept is None else frozenset(map(str.encode, kept))
    for header, record, checksum in _frames(stream):
        if _example_feature(record, feature) in values:
            yield b"".join([header, record, checksum]) if names is None else _framed(_reduced(record, names))


def tfrecord_bytes(examples: Sequence[Example]) -> bytes:
    """A TFRecord file with a record for each example, and the checksums that TensorFlow asks for."""
    records = []
    for example in examples:
        entries = (_field(1, _field(1, name.encode()) + _field(2, _feature(value))) for name, value in example.items())
        records.append(_framed(_field(1, b"".join(entries))))
    return b"".join(records)


def _framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return b"".join([length, masked_checksum(length), record, masked_checksum(record)])


def _reduced(record: bytes, names: frozenset[bytes]) -> bytes:
    """An example with these features only; nothing else of the record stays."""
    entries = (entry for features in _fields(record, 1) for entry in _fields(features, 1))
    return _field(1, b"".join(_field(1, entry) for entry in entries if names.issuperset(_fields(entry, 1))))


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
    offset = 0
    while offset < len(message):
        key, offset = _varint(message, offset)
        kind = key & 7
        if kind == 2:
            length, offset = _varint(message, offset)
            if key >> 3 == number:
                yield message[offset : offset + length]
            offset += length
        elif kind == 0:
            _, offset = _varint(message, offset)
        elif kind in (1, 5):
            offset += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a protobuf message has a field of unknown kind {kind}")


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset


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
