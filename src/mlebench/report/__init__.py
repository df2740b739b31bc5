"""Standings: figures for each agent over run groups, bundles and grading reports. Reads records; changes nothing.

```python
from mlebench.report import make_standings, standings_rows

rows = standings_rows(make_standings([group]))
```
"""

from typing import TYPE_CHECKING

from mlebench.core.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from mlebench.report.formats import standings_rows, to_dict, to_markdown
    from mlebench.report.inputs import Inputs
    from mlebench.report.standings import Standings, make_standings, recount

__all__ = [
    "Inputs",
    "Standings",
    "make_standings",
    "recount",
    "standings_rows",
    "to_dict",
    "to_markdown",
]

__getattr__, __dir__ = lazy_imports(
    __name__,
    {
        "mlebench.report.inputs": ("Inputs",),
        "mlebench.report.formats": ("standings_rows", "to_dict", "to_markdown"),
        "mlebench.report.standings": ("Standings", "make_standings", "recount"),
    },
)
