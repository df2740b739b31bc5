"""A vector of numbers for each file: pictures, sounds, arrays, scans, series; for others, statistics of their bytes."""

import io
import itertools
import re
import struct
import warnings
import wave
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from files import File, Files
from outside import Clock
from PIL import Image

SIDE = 48  # pixels; pictures are shrunk to this
BANDS = 32
LARGEST = 64 << 20  # bytes; larger files are not read
Vector = np.ndarray


def features(rows: Sequence[list[File]], files: Files, clock: Clock) -> np.ndarray:
    """A row for each list of files: the mean of their vectors. Files not read, or not in time, count as missing."""
    order = np.random.default_rng(0).permutation(len(rows))  # if time runs out, a random sample was read
    vectors: dict[int, Vector] = {}
    for row in order:
        if clock.left() < 0:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = [vector for file in rows[row] if (vector := _vector(file, files)) is not None]
        if read:
            longest = max(map(len, read))
            vectors[row] = np.mean([vector for vector in read if len(vector) == longest], axis=0)
    width = int(np.median([len(vector) for vector in vectors.values()])) if vectors else 0
    matrix = np.full((len(rows), width), np.nan, dtype=np.float32)
    for row, vector in vectors.items():
        matrix[row, : len(vector)] = vector[:width]
    return np.where(np.isfinite(matrix), matrix, np.nan)


def _vector(file: File, files: Files) -> Vector | None:
    try:
        content = files.read(file)
        return _OF_KIND[file.kind](content) if len(content) <= LARGEST else None
    except Exception as error:  # a decoder may raise anything; a damaged file has no features
        print(f"skipped {file.path}: {type(error).__name__}", flush=True)
        return None


def _image(content: bytes) -> Vector:
    with Image.open(io.BytesIO(content)) as image:
        size = image.size
        image.draft("RGB", (SIDE * 2, SIDE * 2))
        if image.mode.startswith(("I", "F")):
            return np.concatenate([of_plane(np.asarray(image, dtype=np.float32)), np.log(size)])
        small = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32) / 255
    coarse = small.reshape(8, SIDE // 8, 8, SIDE // 8, 3).mean((1, 3)).ravel()
    histogram = np.concatenate([np.histogram(small[..., c], 8, (0, 1))[0] for c in range(3)]) / SIDE**2
    moments = [small.mean((0, 1)), small.std((0, 1))]
    return np.concatenate([coarse, histogram, *moments, _edges(small.mean(2)), np.log(size), [np.log(len(content))]])


def _edges(plane: np.ndarray) -> Vector:
    """How strong edges are in each direction, in a grid of four by four."""
    down, right = np.gradient(plane)
    strength, direction = np.hypot(down, right), ((np.arctan2(down, right) % np.pi) * 8 / np.pi).astype(int) % 8
    cell = np.arange(SIDE) * 4 // SIDE
    number = (cell[:, None] * 4 + cell[None, :]) * 8 + direction
    return np.bincount(number.ravel(), strength.ravel(), minlength=128)


def of_plane(plane: np.ndarray) -> Vector:
    """Features of any matrix: moments, quantiles, a coarse copy, edges."""
    plane = np.nan_to_num(np.asarray(plane, dtype=np.float32))
    quantiles = np.quantile(plane, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    spread = max(float(plane.std()), 1e-6)
    scaled = Image.fromarray((plane - plane.mean()) / spread, mode="F")
    small = np.asarray(scaled.resize((SIDE, SIDE), Image.Resampling.BOX))
    coarse = small.reshape(8, SIDE // 8, 8, SIDE // 8).mean((1, 3)).ravel()
    rows, columns = plane.mean(1), plane.mean(0)
    moments = [plane.mean(), spread, rows.std(), columns.std(), np.abs(np.diff(plane, axis=0)).mean() / spread]
    return np.concatenate([moments, quantiles, coarse, _edges(small)])


def of_array(array: np.ndarray) -> Vector:
    """The last two axes are a plane. Earlier axes are averaged, and their spread is kept."""
    array = np.asarray(array, dtype=np.float32)
    while array.ndim > 3:
        array = array.mean(0)
    if array.ndim == 1:
        return of_series(array)
    planes = array if array.ndim == 3 else array[None]
    return np.concatenate([of_plane(planes.mean(0)), [planes.mean((1, 2)).std(), planes.std((1, 2)).max()]])


def of_series(values: np.ndarray) -> Vector:
    values = values[np.isfinite(values)].astype(np.float64)
    if len(values) < 2:
        return np.full(24, np.nan)
    steps = np.diff(values)
    spectrum = np.abs(np.fft.rfft(values - values.mean()))[1:]
    shares = [part.sum() for part in np.array_split(spectrum, 8)] / max(spectrum.sum(), 1e-9)
    quantiles = np.quantile(values, [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1])
    rest = [
        values.mean(),
        values.std(),
        np.abs(values).mean(),
        np.abs(steps).mean(),
        steps.std(),
        values[0],
        values[-1],
    ]
    return np.concatenate([quantiles, rest, shares])


def _array(content: bytes) -> Vector:
    return of_array(np.load(io.BytesIO(content), allow_pickle=False))


def _sound(content: bytes) -> Vector:
    samples, rate = _aiff(content) if content[:4] == b"FORM" else _wave(content)
    size = 512
    samples = np.pad(samples[: rate * 60], (0, max(0, 2 * size - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[:: size // 2] * np.hanning(size)
    spectrum = np.abs(np.fft.rfft(frames))[:, 1:]
    edges = np.unique(np.geomspace(1, spectrum.shape[1], BANDS + 1).astype(int))
    bands = np.log(np.stack([spectrum[:, a - 1 : b].mean(1) for a, b in itertools.pairwise(edges)], 1) + 1e-6)
    times = (
        np.stack([part.mean(0) for part in np.array_split(bands, 8)])
        if len(bands) >= 8
        else np.zeros((8, bands.shape[1]))
    )
    steps = np.abs(np.diff(bands, axis=0)).mean(0) if len(bands) > 1 else np.zeros(bands.shape[1])
    return np.concatenate([bands.mean(0), bands.std(0), bands.max(0), steps, times.ravel(), [np.log(len(samples))]])


def _wave(content: bytes) -> tuple[np.ndarray, int]:
    with wave.open(io.BytesIO(content)) as sound:
        width, channels, rate = sound.getsampwidth(), sound.getnchannels(), sound.getframerate()
        data = sound.readframes(sound.getnframes())
    return _samples(data, width, channels, "<"), rate


def _samples(data: bytes, width: int, channels: int, order: str) -> np.ndarray:
    if width == 1:
        values = np.frombuffer(data, np.uint8).astype(np.float32) / 128 - 1
    else:
        kind = np.dtype(f"{order}i{width}") if width in (2, 4) else np.dtype(np.int8)
        values = np.frombuffer(data, kind, len(data) // kind.itemsize).astype(np.float32) / 2.0 ** (
            8 * kind.itemsize - 1
        )
    return values[: len(values) // channels * channels].reshape(-1, channels).mean(1)


def _aiff(content: bytes) -> tuple[np.ndarray, int]:
    """AIFF: chunks, each with a name and a size. The rate is a float of 80 bits."""
    at, channels, bits, rate, data = 12, 1, 16, 0, b""
    while at + 8 <= len(content):
        name, size = struct.unpack(">4sI", content[at : at + 8])
        chunk = content[at + 8 : at + 8 + size]
        if name == b"COMM":
            channels, _, bits, exponent, mantissa = struct.unpack(">hIhHQ", chunk[:18])
            rate = round(mantissa * 2.0 ** ((exponent & 0x7FFF) - 16383 - 63))
        elif name == b"SSND":
            data = chunk[8:]
        at += 8 + size + size % 2
    return _samples(data, (bits + 7) // 8, channels, ">"), rate or 8000


def _scan(content: bytes) -> Vector:
    """DICOM with plain pixels, or with a picture inside that Pillow can read."""
    at = content.rfind(b"\xe0\x7f\x10\x00")
    for mark in (b"\xff\xd8\xff", b"\xff\x4f\xff\x51"):
        if 0 <= at < (begin := content.find(mark, at)) < at + 200:
            return _image(content[begin:])
    shape = [
        re.search(rb"\x28\x00" + tag + rb"\x00(?:US\x02\x00|\x02\x00\x00\x00)(..)", content, re.S)
        for tag in (b"\x10", b"\x11")
    ]
    height, width = (struct.unpack("<H", match[1])[0] if match else 0 for match in shape)
    pixels = content[-height * width * 2 :] if height and width and len(content) - at > height * width * 2 else b""
    if pixels:
        return of_plane(np.frombuffer(pixels, "<u2").reshape(height, width))
    pixels = content[-height * width :] if height and width else b""
    return of_plane(np.frombuffer(pixels, np.uint8).reshape(height, width))


def _series(content: bytes) -> Vector:
    frame = pd.read_csv(io.BytesIO(content)).select_dtypes("number").iloc[:, :40]
    columns = [np.append(of_series(frame[name].to_numpy()), frame[name].isna().mean()) for name in frame]
    return np.concatenate([*columns, [len(frame)]])


def _of_bytes(content: bytes) -> Vector:
    values = np.frombuffer(content[: 1 << 20], np.uint8)
    return np.append(np.bincount(values // 8, minlength=32) / max(1, len(values)), np.log(len(content) + 1))


_OF_KIND: dict[str, Callable[[bytes], Vector]] = {
    "image": _image,
    "sound": _sound,
    "array": _array,
    "scan": _scan,
    "series": _series,
    "other": _of_bytes,
}
