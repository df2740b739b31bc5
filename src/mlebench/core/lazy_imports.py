"""Names that a package exports, but imports only when they are first used: importing the package costs nothing."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_imports(
    package: str, exports: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `exports` has the names that come from each module.

    No name may be that of a module of the package: once that module is imported, it would hide the name.
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load, lambda: sorted(modules)
