"""What every process that prepares or grades has loaded; one that only waits does not need it."""

from importlib import import_module

for _name in ("mlebench.data.kaggle", "mlebench.data.pipeline", "mlebench.kit"):
    import_module(_name)
