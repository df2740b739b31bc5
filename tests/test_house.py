"""House rules: which way imports point, what may happen at import, how large things may grow."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import mlebench
from mlebench.core.paths import DESCRIPTION, MANIFEST, PRIVATE, PUBLIC
from mlebench.sandbox import BACKENDS

SOURCE = Path(mlebench.__file__).parent
# Floors, from the ground up: the rooms of each import only rooms of floors below.
FLOORS = (
    ["core"],
    ["records", "metrics", "engine"],
    ["kit"],
    ["registry"],
    ["data", "validate", "sandbox", "gateway", "packages"],
    ["grade", "agents"],
    ["run", "bundles", "contract"],
    ["report"],
    ["integrity", "web"],
    ["cli"],
)
# Modules beside the rooms, and the room that each belongs to.
ROOMS = {"config": "registry", "description": "registry", "scoring": "registry", "splits": "registry"}
ANY = "<any>"  # a module whose name is only known at run time
# Names for existing clients: they may import anything, and nothing of ours imports them.
FOR_CLIENTS = {"errors", "grade_helpers", "utils", "competitions.utils"}
# Competitions that turn tables into pandas frames. This list may only shrink.
TO_PANDAS_USERS: set[str] = set()
HEAVY = ("pandas", "numpy", "pyarrow", "scipy", "PIL", "rich", "kaggle", "sklearn", "starlette", "uvicorn", "httpx2")


def _modules() -> Iterator[tuple[str, ast.Module, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        yield name, ast.parse(text), text


def _imports(name: str, tree: ast.AST) -> set[str]:
    """Our modules that a module imports, without the leading `mlebench.`: anywhere in it, relatively or by a string.

    A string counts if it is a module's name, as for `import_module` and `python -m`; one that only begins with a
    package's name means any of its modules.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{_home(name, node)}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_module(node.value):
            found.add(re.sub(r"\.$", f".{ANY}", node.value))
    return {imported.partition(".")[2] for imported in found if imported.split(".")[0] == "mlebench"} - {""}


def _is_module(name: str) -> bool:
    """Whether a string names a module or package of ours, and not a logger or a label."""
    if not re.fullmatch(r"mlebench(\.\w+)+\.?", name):
        return False
    path = SOURCE.parent / name.rstrip(".").replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def _home(name: str, node: ast.ImportFrom) -> str:
    """The module that something is imported from."""
    if not node.level:
        return node.module or ""
    is_package = (SOURCE / name.replace(".", "/") / "__init__.py").is_file()
    parents = ["mlebench", *filter(None, name.split("."))]
    home = parents[: len(parents) + is_package - node.level]
    return ".".join([*home, *([node.module] if node.module else [])])


def _imported_modules() -> dict[str, set[str]]:
    """For each module, those it imports: `a.b` for anything from the module or package `a.b`, or from `a`."""
    trees = {name: tree for name, tree, _ in _modules()}
    return {
        name: {_module(imported, trees.keys()) for imported in _imports(name, tree)} - {"", name}
        for name, tree in trees.items()
    }


def _module(imported: str, known: Collection[str]) -> str:
    """The imported module, without names of functions and classes; empty if only the package is known."""
    if imported.endswith(ANY):
        return ""
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def _rank(module: str) -> int:
    return next(rank for rank, rooms in enumerate(FLOORS) if _room(module) in rooms)


def _room(module: str) -> str:
    name = module.split(".")[0]
    return ROOMS.get(name, name)


def test_imports_point_one_way() -> None:
    for name, tree, _ in _modules():
        if name in FOR_CLIENTS or name.startswith("competitions") or name in ("", "__main__"):
            continue
        for imported in _imports(name, tree) - {"__version__"}:
            if imported.split(".")[0] == "competitions":
                continue
            assert imported not in FOR_CLIENTS, f"{name} imports {imported}, which is for clients"
            assert _rank(imported) <= _rank(name), f"{name} imports {imported}"
            same_room = _room(imported) == _room(name)
            assert same_room or _rank(imported) < _rank(name), f"{name} imports {imported}"


def test_contributing_shows_the_floors_from_the_roof_down() -> None:
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = text.partition("### The house")[2].partition("```text\n")[2].partition("```")[0]
    assert [line.split() for line in picture.splitlines()] == [list(rooms) for rooms in reversed(FLOORS)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports, safe = _imported_modules(), set()
    while ready := {name for name, imported in imports.items() if name not in safe and imported <= safe}:
        safe |= ready
    # What is left is in a cycle, or above one; those above need not be reported.
    left = {name: imported - safe for name, imported in imports.items() if name not in safe}
    while above := {name for name in left if not any(name in imported for imported in left.values())}:
        left = {name: imported for name, imported in left.items() if name not in above}
    assert left == {}


@pytest.mark.parametrize(
    ("name", "code", "imported"),
    [
        ("kit.files", "from mlebench.data import pipeline", {"data.pipeline"}),
        ("kit.files", "def late():\n    import mlebench.data.batch", {"data.batch"}),
        ("kit.files", "from . import rle", {"kit.rle"}),
        ("kit.files", "from ..data.batch import prepare_many", {"data.batch.prepare_many"}),
        ("kit.twins", "from .formats import csv_bytes", {"kit.twins.formats.csv_bytes"}),
        ("kit.files", "import_module('mlebench.cli.run')", {"cli.run"}),
        ("kit.files", "run([sys.executable, '-m', 'mlebench.cli.run'])", {"cli.run"}),
        ("kit.files", "import_module(f'mlebench.cli.{verb}')", {f"cli.{ANY}"}),
        ("kit.files", "import os; from json import loads; say('mlebench.kit is here', 'mlebench.agent')", set()),
    ],
)
def test_every_way_to_import_is_seen(name: str, code: str, imported: set[str]) -> None:
    assert _imports(name, ast.parse(code)) == imported


def test_competitions_import_kit_and_metrics_only() -> None:
    for name, tree, _ in _modules():
        if name.startswith("competitions.") and name not in FOR_CLIENTS:
            own_folder = name.rpartition(".")[0] + "."
            others = {imported for imported in _imports(name, tree) if not imported.startswith(own_folder)}
            assert {imported.split(".")[0] for imported in others} <= {"kit", "metrics"}, name


def test_competitions_use_tables() -> None:
    users = {
        name.split(".")[1] for name, _, text in _modules() if name.startswith("competitions.") and "to_pandas(" in text
    }
    assert users == TO_PANDAS_USERS


def test_file_names_are_spelled_in_paths_only() -> None:
    texts = {
        name: {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for name, tree, _ in _modules()
        # Competitions, and programs in an agent's folder, know nothing about this package.
        if not name.startswith("competitions.") and not re.match(r"agents\.\w+\.", name)
    }
    spelled = set().union(*(texts.pop(name) for name in [*texts] if name.startswith("core.paths")))
    names = {text for text in spelled if re.fullmatch(r"[a-z-]+(\.[a-z]+)+", text)} | {PUBLIC, PRIVATE}
    assert {MANIFEST, DESCRIPTION, "twin.json", "grades.jsonl"} <= names
    assert {name: found & names for name, found in texts.items() if found & names} == {}


def test_nothing_asks_which_sandbox_it_is() -> None:
    """What differs between backends is an attribute of theirs, so that a new one is a class in a module."""
    for name, tree, _ in _modules():
        comparisons = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
        sides = [side for comparison in comparisons for side in (comparison.left, *comparison.comparators)]
        words = [word for side in sides for word in getattr(side, "elts", [side])]
        assert not {word.value for word in words if isinstance(word, ast.Constant)} & BACKENDS.keys(), name


def test_library_code_raises_and_never_asserts() -> None:
    for name, tree, _ in _modules():
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), name


def test_modules_and_functions_stay_small() -> None:
    for name, tree, text in _modules():
        assert len(text.splitlines()) <= 600, name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 50, f"{name}.{node.name}"


@pytest.mark.parametrize(
    "module", ["mlebench", "mlebench.registry", "mlebench.scoring", "mlebench.data", "mlebench.grade", "mlebench.cli"]
)
def test_import_does_nothing(module: str, tmp_path: Path) -> None:
    program = f"""
import json, logging, socket, sys
def no_network(*args, **kwargs): raise RuntimeError("network at import")
socket.socket.connect = socket.create_connection = no_network
import {module}
handlers = logging.getLogger().handlers + logging.getLogger("mlebench").handlers
print(json.dumps({{"modules": sorted(sys.modules), "handlers": len(handlers)}}))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    assert not {name for name in seen["modules"] if name.split(".")[0] in HEAVY}
    assert seen["handlers"] == 0
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--help"], ["prepare", "--help"], ["list"], ["show", "spaceship-titanic"]])
def test_commands_that_only_read_facts_load_no_heavy_library(arguments: list[str], tmp_path: Path) -> None:
    program = f"""
import sys
from mlebench.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code
loaded = sorted(name for name in sys.modules if name in {HEAVY!r})
print(loaded, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert list(tmp_path.iterdir()) == []


def test_public_names_exist() -> None:
    import mlebench.data
    import mlebench.grade
    import mlebench.kit
    import mlebench.metrics
    import mlebench.utils

    for module in (mlebench.kit, mlebench.metrics, mlebench.data, mlebench.grade, mlebench.utils):
        assert sorted(module.__all__) == list(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
