"""TFRecord files, read without TensorFlow."""

import struct
from collections.abc import Iterator
from typing import BinaryIO


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
