"""Pages: standings, competitions, agents compared, run groups and runs; written to disk or served.

`site` knows what there is to show and which page has which path. A page is a template and its data, which is beside it
as JSON. `pages/` makes the data, one module for each kind of page; `write` writes all pages to a folder and `server`
serves them, fresh for every request.
"""

from typing import TYPE_CHECKING

from mlebench.core.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from mlebench.web.write import write_pages

__all__ = [
    "write_pages",
]

__getattr__, __dir__ = lazy_imports(
    __name__,
    {
        "mlebench.web.write": ("write_pages",),
    },
)
