"""Notebooks are read whatever version of Jupyter wrote them."""

from typing import Any

import pytest

from mlebench.integrity.notebooks import Cell, cells_of

CELLS = [{"cell_type": "markdown", "source": ["# A ", "plan"]}, {"cell_type": "code", "source": "x = 1"}]
OLD = [CELLS[0], {"cell_type": "code", "input": ["x = 1"]}]


@pytest.mark.parametrize("notebook", [{"cells": CELLS}, {"worksheets": [{"cells": OLD[:1]}, {"cells": OLD[1:]}]}])
def test_cells_of_every_version(notebook: dict[str, Any]) -> None:
    assert list(cells_of(notebook)) == [Cell(1, False, "# A plan"), Cell(2, True, "x = 1")]


@pytest.mark.parametrize("notebook", [[], 7, {}, {"cells": 3}, {"cells": ["x"]}, {"cells": [{}]}, {"worksheets": [1]}])
def test_a_broken_notebook_is_said_to_be_broken(notebook: Any) -> None:
    with pytest.raises(ValueError, match="broken notebook"):
        list(cells_of(notebook))
