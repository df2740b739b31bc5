"""Run by an agent's Python: prints which of the named packages cannot be imported, and why.

One module that can be imported is enough for a package: others may be for other systems.
"""

import contextlib
import importlib
import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from importlib import metadata

ASIDE = {"__pycache__", "bin", "doc", "docs", "example", "examples", "test", "tests"}
LONGEST_REASON = 300


def modules(files: Iterable[metadata.PackagePath]) -> Iterator[str]:
    """The modules at the top of a package's files."""
    for file in files:
        first = file.parts[0]
        name = first if len(file.parts) > 1 else first.partition(".")[0]
        if file.suffix in (".py", ".so") and name.isidentifier() and name not in ASIDE:
            yield name


def fault(name: str) -> str | None:
    try:
        files = metadata.distribution(name).files or ()
    except metadata.PackageNotFoundError:
        return None  # its marker does not apply here
    reason = None
    for module in dict.fromkeys(modules(files)):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                importlib.import_module(module)
        except BaseException as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
            reason = reason or f"{name} cannot be imported: {text}"
        else:
            return None
    return reason


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for reason in filter(None, map(fault, sys.argv[1:])):
        sys.stdout.write(f"{reason}\n")
