"""Sizes of images and arrays, from their first bytes."""

import io
from pathlib import Path

import numpy as np
import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.kit import npy_shape, open_raw, png_size
from mlebench.kit.twins import image_bytes, npy_bytes, zip_bytes

pytestmark = pytest.mark.bytes


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_a_png_image_gives_its_size_first(kind: type) -> None:
    assert png_size(image_bytes(np.zeros((3, 400), dtype=kind), "PNG")[:24]) == (400, 3)


@pytest.mark.parametrize(
    "head", [b"", image_bytes(np.zeros((3, 4)), "PNG")[:23], image_bytes(np.zeros((3, 4)), "JPEG")]
)
def test_anything_but_a_png_image_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError, match="not a PNG image"):
        png_size(head)


@pytest.mark.parametrize("shape", [(), (7,), (256, 256, 8)])
def test_an_array_gives_its_shape_first(shape: tuple[int, ...]) -> None:
    assert npy_shape(npy_bytes(np.zeros(shape, dtype=np.float32))[:128]) == shape


def test_an_array_in_a_later_format_version_gives_its_shape_too() -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros((5, 2)), version=(2, 0))
    assert npy_shape(stream.getvalue()) == (5, 2)


def test_only_the_head_is_read(tmp_path: Path) -> None:
    files = {"a/one.bin": bytes(range(200)), "two.bin": b"short"}
    (tmp_path / "raw" / "a").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "raw" / name).write_bytes(content)
    (tmp_path / "raw.zip").write_bytes(zip_bytes(files))
    for source in ("raw", "raw.zip"):
        with open_raw(tmp_path / source) as raw:
            assert [raw.file(name).head(24) for name in files] == [content[:24] for content in files.values()]
            with pytest.raises(PrerequisiteError, match=r"lacks three\.bin"):
                raw.file("three.bin").head(24)
