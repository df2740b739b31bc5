"""What twins are made with."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mlebench.kit import TwinFolder, csv_bytes, image_bytes, json_bytes, rounded, zip_bytes

pytestmark = pytest.mark.bytes

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(list('",;\r\n')), max_size=6)


def test_cells_stand_in_the_file_as_they_were_given() -> None:
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


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_images_are_real_ones(shape: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape)
    with Image.open(io.BytesIO(image_bytes(pixels, "PNG"))) as image:
        assert image.size == (7, 5)
        assert (np.asarray(image) == pixels).all()
    with Image.open(io.BytesIO(image_bytes(pixels, "JPEG"))) as image:
        assert image.format == "JPEG"


@pytest.mark.parametrize(("size", "count"), [(0.001, 2), (0.5, 50), (1, 100), (2.5, 250), (1000, 100_000)])
def test_counts_follow_the_size(tmp_path: Path, size: float, count: int) -> None:
    twin = TwinFolder(tmp_path, size=size)
    assert twin.count(100) == count
    assert twin.count(100, least=7) == max(7, count)


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
    twin.stands_for(9914, 12)
    assert (tmp_path / "raw/a/b.bin").read_bytes() == b"\x00"
    assert (tmp_path / "raw/t.csv").read_bytes() == b"n\r\n1\r\n"
    assert (tmp_path / "raw/z.zip").read_bytes() == zip_bytes({"x": b"y"})
    assert twin.scaled == {9914: 12}
    assert json.loads(json_bytes({"é": [1]})) == {"é": [1]}
