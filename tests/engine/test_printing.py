"""Lines of CSV are those of pandas 2.2 on Python 3.11, on any version: figures from there, and newer csv corrected."""

import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.engine.csv import csv_source
from mlebench.kit import Output, Raw, Table, md5_of, split_rows
from mlebench.kit.outputs import run_prepare
from mlebench.kit.twins import TwinFolder, csv_bytes

pytestmark = pytest.mark.bytes

# A cell, and how pandas 2.2.2 printed it on Python 3.11.7 before another cell: plainly, between tabs, and with all
# text in quotes.
CELLS = [
    ("a\rb", "a\rb", "a\rb", '"a\rb"'),
    ("\r", "\r", "\r", '"\r"'),
    ("a\r", "a\r", "a\r", '"a\r"'),
    ("a\nb", '"a\nb"', '"a\nb"', '"a\nb"'),
    ("a\r\nb", '"a\r\nb"', '"a\r\nb"', '"a\r\nb"'),
    ("a,b", '"a,b"', "a,b", '"a,b"'),
    ("a\tb", "a\tb", '"a\tb"', '"a\tb"'),
    ('a"b', '"a""b"', '"a""b"', '"a""b"'),
    ('"\r', '"""\r"', '"""\r"', '"""\r"'),
    ("a\u2028b\u2029c\x85d", "a\u2028b\u2029c\x85d", "a\u2028b\u2029c\x85d", '"a\u2028b\u2029c\x85d"'),
    ("a\x0bb\x0cc\x1cd\x1de", "a\x0bb\x0cc\x1cd\x1de", "a\x0bb\x0cc\x1cd\x1de", '"a\x0bb\x0cc\x1cd\x1de"'),
    ("a\x00b", "a\x00b", "a\x00b", '"a\x00b"'),
    ("\ufeffa", "\ufeffa", "\ufeffa", '"\ufeffa"'),
    (" a ", " a ", " a ", '" a "'),
    ("a;b|c'd\\e#f", "a;b|c'd\\e#f", "a;b|c'd\\e#f", '"a;b|c\'d\\e#f"'),
    ("", "", "", '""'),
    (None, "", "", '""'),
    (float("nan"), "", "", '""'),
    (1, "1", "1", "1"),
    (0.1, "0.1", "0.1", "0.1"),
    (1e-05, "1e-05", "1e-05", "1e-05"),
    (True, "True", "True", "True"),
    (np.True_, "True", "True", "True"),
]  # fmt: skip


def printed(table: Table, **style: Any) -> str:
    stream = io.BytesIO()
    table.write_csv(stream, **style)
    return stream.getvalue().decode()


@pytest.mark.parametrize(("cell", "plain", "tabs", "quoted"), CELLS)
def test_cells_print_as_pandas_printed_them_on_python_3_11(cell: Any, plain: str, tabs: str, quoted: str) -> None:
    table = Table.from_columns({"a": np.array([cell, None], dtype=object)[:1], "b": ["x"]})
    assert printed(table) == f"a,b\n{plain},x\n"
    assert printed(table, sep="\t") == f"a\tb\n{tabs}\tx\n"
    assert printed(table, quoting="nonnumeric") == f'"a","b"\n{quoted},"x"\n'
    alone = {"minimal": plain or '""', "nonnumeric": quoted}
    for quoting, shown in alone.items():
        assert printed(table.select("a"), quoting=quoting).partition("\n")[2] == f"{shown}\n"


@pytest.mark.parametrize(("cell", "plain", "tabs", "quoted"), [cells for cells in CELLS if isinstance(cells[0], str)])
def test_names_of_columns_print_as_cells_do(cell: str, plain: str, tabs: str, quoted: str) -> None:
    table = Table.from_columns({cell: ["x"], "b": ["y"]})
    assert printed(table) == f"{plain},b\nx,y\n"
    assert printed(table, sep="\t") == f"{tabs}\tb\nx\ty\n"
    assert printed(table, quoting="nonnumeric") == f'{quoted},"b"\n"x","y"\n'


TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(list("\",;'\t\r\n \x0b\x85\u2028")), max_size=6
)
VALUES = TEXT | st.none() | st.integers() | st.floats() | st.booleans()  # fmt: skip


@given(
    st.lists(st.tuples(VALUES, VALUES), max_size=5),
    st.sampled_from([",", ";", "\t", " ", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@example([("a\rb", "")], ",", "\n", False)
@example([("a\rb", "")], ",", "\r\n", False)
def test_twins_print_as_the_csv_module_of_python_3_11(
    rows: list[tuple[Any, Any]], sep: str, newline: str, quote: bool
) -> None:
    ours = csv_bytes(
        {"a": [a for a, _ in rows], "b\r": [b for _, b in rows]}, sep=sep, newline=newline, quote_text=quote
    )
    assert ours.decode() == _by_csv([("a", "b\r"), *rows], sep, newline, quote)
    one = csv_bytes({"a": [a for a, _ in rows]}, sep=sep, newline=newline, quote_text=quote)
    assert one.decode() == _by_csv([("a",), *((a,) for a, _ in rows)], sep, newline, quote)


def _by_csv(rows: list[tuple], sep: str, newline: str, quote: bool) -> str:
    """Up to Python 3.12 a lone carriage return is an ordinary character, unless it is part of a line's end."""
    hide = sys.version_info >= (3, 13) and newline == "\n"
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_NONNUMERIC if quote else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=sep, lineterminator=newline, quoting=quoting)
    for row in rows:
        writer.writerow([cell.replace("\r", "\x01") if hide and isinstance(cell, str) else cell for cell in row])
    return text.getvalue().replace("\x01", "\r") if hide else text.getvalue()


def test_columns_longer_than_what_is_printed_at_a_time() -> None:
    rows = 40_000
    assert csv_bytes({"n": range(rows)}).decode().split() == ["n", *map(str, range(rows))]


ODD = ["a\rb", 'say "x"', "two\nlines", "three\r\nlines", "a\u2028b\x85c", "\x0bd\x1c", "e,f", "", "plain", "é漢🙂"]


# Raw files as csv wrote them on Python 3.11.7; prepared ones as pandas 2.2.2 and scikit-learn 1.5.1 made them there.
ODD_RAW = {
    "train.csv": "97d6ba7f3c6edee57e4568b01ba11be9",
    "crlf.csv": "68e464d53c4b4b8aaa56fb2466dbce85",
}
ODD_PREPARED = {
    "public/train.csv": "41e07a1745aaf3a4fa45addb16a3fe19",
    "public/train.tsv": "3453aebcf0d6b97eee4ff590bb1a31ec",
    "public/test.csv": "1797ea91f8aa7379b212ab33becf2950",
    "private/test.csv": "d8afd1b80e046d60b11e8c41217a140d",
}


def odd_twin(raw: TwinFolder) -> None:
    """A twin whose cells some reader or printer would split."""
    texts = [f"{row} {ODD[row % len(ODD)]}" for row in range(raw.count(30))]
    raw.write_csv("train.csv", {"id": range(len(texts)), "text": texts, "n": raw.rng.randint(0, 9, len(texts))})
    raw.write_csv("crlf.csv", {"id": range(len(texts)), "text": texts}, newline="\r\n", quote_text=True)


def odd_prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("crlf.csv"), test_size=0.2, seed=0)
    public.write("train.csv", train)
    public.write("train.tsv", train)
    public.write("test.csv", test.drop("text"), quoting="nonnumeric")
    private.write("test.csv", test, quoting="nonnumeric")


def test_a_twin_of_odd_cells_is_the_same_on_every_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    odd_twin(TwinFolder(raw))
    lines = (raw / "train.csv").read_bytes().decode().split("\n")
    assert lines[1].startswith("0,0 a\rb,"), "no quotes for a carriage return alone"
    assert {name: md5_of(raw / name) for name in ODD_RAW} == ODD_RAW
    for way, size in (("whole", 1 << 30), ("blocks", 0)):
        monkeypatch.setattr(csv_source, "STREAM_BYTES", size)
        run_prepare(odd_prepare, raw, tmp_path / way / "public", tmp_path / way / "private")
        assert {name: md5_of(tmp_path / way / name) for name in ODD_PREPARED} == ODD_PREPARED
