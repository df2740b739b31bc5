"""Pictures, sounds and videos for twins: the smallest valid files."""

import io
import struct
import wave
from collections.abc import Sequence

import numpy as np


def image_bytes(pixels: np.ndarray, format: str) -> bytes:
    """An image file: of 8-bit pixels, grey (height, width) or RGB (height, width, 3), or of uint16 grey ones."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels if pixels.dtype == np.uint16 else pixels.astype(np.uint8)).save(stream, format=format)
    return stream.getvalue()


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    """A sound of one channel: 16-bit whole numbers, `rate` per second."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setparams((1, 2, rate, len(samples), "NONE", ""))
        sound.writeframes(samples.astype("<i2").tobytes())
    return stream.getvalue()


def aiff_bytes(samples: np.ndarray, rate: int) -> bytes:
    """Return sound like `wav_bytes`, in Apple's AIFF format, whose numbers are big-endian."""
    power = rate.bit_length() - 1  # the rate is a float of 80 bits: an exponent, and a fraction that begins with a one
    common = struct.pack(">hIhHQ", 1, len(samples), 16, 16383 + power, rate << 63 - power)
    sound = bytes(8) + samples.astype(">i2").tobytes()
    return _chunk(b"FORM", b"AIFF", _chunk(b"COMM", common), _chunk(b"SSND", sound))


def _chunk(kind: bytes, *parts: bytes) -> bytes:
    """The building block of AIFF files: a name, a length, and that many bytes."""
    content = b"".join(parts)
    return struct.pack(">4sI", kind, len(content)) + content


def mp4_bytes(frames: Sequence[bytes], *, width: int, height: int) -> bytes:
    """A video whose frames are JPEG images, one per second: about the simplest file that players accept."""
    count, matrix = len(frames), struct.pack(">9I", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)  # not rotated
    kind = _box(b"ftyp", b"isom", bytes(4), b"isom")
    sample = struct.pack(">6xH16xHHII4xH32xHH", 1, width, height, 72 << 16, 72 << 16, 1, 24, 0xFFFF)
    samples = _box(
        b"stbl",
        _box(b"stsd", struct.pack(">4xI", 1), _box(b"jpeg", sample)),
        _box(b"stts", struct.pack(">4xIII", 1, count, 1)),
        _box(b"stsc", struct.pack(">4xIIII", 1, 1, count, 1)),
        _box(b"stsz", struct.pack(f">8xI{count}I", count, *map(len, frames))),
        _box(b"stco", struct.pack(">4xII", 1, len(kind) + 8)),
    )
    data_reference = _box(b"dinf", _box(b"dref", struct.pack(">4xI", 1), _box(b"url ", struct.pack(">I", 1))))
    media = _box(
        b"mdia",
        _box(b"mdhd", struct.pack(">12xIIHxx", 1, count, 0x55C4)),
        _box(b"hdlr", struct.pack(">8x4s13x", b"vide")),
        _box(b"minf", _box(b"vmhd", struct.pack(">I8x", 1)), data_reference, samples),
    )
    size = struct.pack(">II", width << 16, height << 16)
    header = _box(b"tkhd", struct.pack(">I8xI4xI16x", 7, 1, count), matrix, size)
    movie = _box(b"mvhd", struct.pack(">12xIIIH10x", 1, count, 1 << 16, 1 << 8), matrix, struct.pack(">24xI", 2))
    return kind + _box(b"mdat", *frames) + _box(b"moov", movie, _box(b"trak", header, media))


def _box(kind: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return struct.pack(">I4s", len(content) + 8, kind) + content
