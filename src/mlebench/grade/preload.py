"""Imports what graders need, for `core.isolate`, and grades two rows: first use takes time, too."""

import io
from importlib import import_module

for _name in ("mlebench.data.preload", "mlebench.metrics", "mlebench.competitions", "pyarrow.pandas_compat", "yaml"):
    import_module(_name)
import_module("pyarrow.vendored.version")


def _use() -> None:
    from mlebench.kit import align
    from mlebench.validate.submission_table import read_table

    tables = [read_table(io.BytesIO(b"id,x,y\na,0.5,0\nb,1.5,1\n")) for _ in range(2)]
    align(*tables, id="id", target=["x", "y"], values="numbers")


_use()
