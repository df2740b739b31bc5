"""Imports what preparing and grading need, for `core.isolate`: its calls then start with these modules loaded."""

from importlib import import_module

for _name in ("mlebench.data.kaggle", "mlebench.data.pipeline", "mlebench.kit"):
    import_module(_name)
