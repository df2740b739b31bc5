"""One folder per competition, named by Kaggle's id. Folders outside the package join through the search path.

Two things happen to a folder's code when it is imported, so that no folder has to do them:

- A `prepare` that is written for the engine (`raw: Raw`) also takes plain paths, as existing clients pass them.
- `v2` gets whatever it does not define itself from `prepare` and `grade`.
"""

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

_MARK = "for_engine"  # on a function that also takes plain paths: the one written for the engine
_HOME = {"prepare": "prepare", "grade": "grade", "stand_in": "grade"}  # function: module of profile v1


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        package, _, name = module.__name__.rpartition(".")
        prepare = getattr(module, "prepare", None)
        if prepare and _is_for_the_engine(prepare):
            module.prepare = _taking_paths(prepare)  # pyright: ignore[reportAttributeAccessIssue] it has one
        if name == "v2":
            module.__getattr__ = lambda name: _of_v1(package, name)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}.") or not name.endswith((".prepare", ".v2")):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _of_v1(package: str, function: str) -> Any:
    if function not in _HOME:
        raise AttributeError(f"{package}.v2 has no {function!r}")
    return getattr(import_module(f"{package}.{_HOME[function]}"), function)


def _is_for_the_engine(prepare: Callable[..., Any]) -> bool:
    kind = prepare.__annotations__.get("raw")
    return getattr(kind, "__name__", kind) == "Raw" and not hasattr(prepare, _MARK)


def _taking_paths(prepare: Callable[..., Any]) -> Callable[..., None]:
    @wraps(prepare)
    def either(raw: Any, public: Any, private: Any) -> None:
        if not isinstance(raw, str | Path):
            prepare(raw, public, private)
            return
        from mlebench.kit.outputs import run_prepare

        run_prepare(prepare, Path(raw), Path(public), Path(private))

    setattr(either, _MARK, prepare)
    return either


sys.meta_path.insert(0, _Finder)
