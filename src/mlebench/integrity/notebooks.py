"""Notebooks of Jupyter, in the forms of all its versions."""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Cell(NamedTuple):
    number: int  # from 1
    is_code: bool
    source: str


def cells_of(notebook: Any) -> Iterator[Cell]:
    """The cells, without their outputs; ValueError if the notebook is broken."""
    try:
        sheets = notebook.get("worksheets")  # notebooks made before 2015
        cells = [cell for sheet in sheets for cell in sheet["cells"]] if sheets else notebook["cells"]
        for number, cell in enumerate(cells, 1):
            source = cell["source"] if "source" in cell else cell["input"]
            text = source if isinstance(source, str) else "".join(map(str, source))
            yield Cell(number, cell["cell_type"] == "code", text)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("is a broken notebook") from None
