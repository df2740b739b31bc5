"""What each package exports: the names that docs/reference/python.md shows, loaded when they are first used."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = ["bundles", "data", "grade", "integrity", "report", "run", "validate", "web"]
HEAVY = ("numpy", "pandas", "rich", "starlette", "uvicorn")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there(package: str) -> None:
    module = import_module(f"mlebench.{package}")
    for name in module.__all__:
        assert getattr(module, name).__module__.startswith("mlebench."), name
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018


@pytest.mark.parametrize("package", ["bundles", "integrity", "report", "run", "web"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    code = f"import sys, mlebench.{package}; print(sorted(set(sys.modules) & set({HEAVY})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("package", ["bundles", "integrity", "report", "run", "web"])
def test_exported_functions_say_what_they_return_and_are_in_the_docs(package: str) -> None:
    module = import_module(f"mlebench.{package}")
    page = (Path(__file__).parents[1] / "docs/reference/python.md").read_text(encoding="utf-8")
    functions = [name for name in module.__all__ if name[0].islower()]
    assert functions
    for name in functions:
        assert (getattr(module, name).__doc__ or "").partition("\n")[0].endswith("."), name
        assert f"{name}(" in page, f"docs/reference/python.md does not mention {name}"
