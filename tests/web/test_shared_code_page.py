"""Shared code on a run's page: what the record says, side by side, and no more than text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.sites import fill_run, make_group

from mlebench.core.paths import RunPaths
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Registry
from mlebench.web.inspection_view import shared_code
from mlebench.web.pages import page_at
from mlebench.web.render import to_html
from mlebench.web.site import Site

LEFT, RIGHT = "for row in rows:\n    print(row)", "for x in xs:\n    print('<script>alert(1)</script>', x)"


def side(file: str, text: str, cell: int | None = None, **more: Any) -> dict[str, Any]:
    return {"file": file, "cell": cell, "line": 3, "lines": text.count("\n") + 1, "text": text, **more}


def match(name: str, **more: Any) -> dict[str, Any]:
    figures = {"containment": 0.634, "similarity": 0.41, "longest": 1234, "unusual": True}
    return {"name": name, "file": "code/main.py", **figures, "passages": [], **more}


def record(**facts: Any) -> dict[str, Any]:
    passages = [{"tokens": 300, "left": side("code/main.py", LEFT), "right": side("ada/look.ipynb", RIGHT, 7, lines=9)}]
    told = {
        "says": "63% of code/main.py is also in ada/look.ipynb: unusual",
        "threshold_says": "threshold 12%",
        "notebooks": [match("ada/look.ipynb", passages=passages), match("bob/other.py", unusual=False)],
        "runs": [match("group/run", agent="the same agent", unusual=None)],
    }
    return {"schema": 1, "tool": "plagiarism", "facts": told | facts, "findings": []}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    group = make_group(tmp_path / "runs", "one", ["leaf-classification"], seeds=1)
    (found,) = Group.read(group).runs()
    fill_run(found.paths.root)
    return found


def keep(run: Run, value: Any) -> None:
    path = RunPaths(run.paths.root).finding("plagiarism")
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def page(run: Run) -> str:
    runs = run.paths.root.parent.parent
    site = Site([], [Group.read(folder) for folder in runs.iterdir()], Registry(runs.parent / "data"))
    found = page_at(site, f"run/{run.paths.root.parent.name}/{run.paths.root.name}.html")
    assert found is not None
    return to_html(found, site)


def test_passages_are_shown_side_by_side_as_text(run: Run) -> None:
    keep(run, record())
    html = page(run)
    section = html[html.index('id="run-shared"') : html.index('id="run-files"')]
    left, right = re.findall(r"<figure>(.*?)</figure>", section, re.DOTALL)
    assert "print(row)" in left
    assert "code/main.py, line 3" in left
    assert "&lt;script&gt;alert(1)" in right
    assert "ada/look.ipynb, cell 7, line 3" in right
    assert "and 7 more lines" in right
    assert "<script>alert" not in html
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)[1:]]
    assert rows[0] == ["ada/look.ipynb", "code/main.py", "63", "%", "41", "%", "1,234", "tokens", "unusual"]
    assert rows[1][-1] == "usual"
    assert rows[2] == [
        "group/run",
        "a",
        "run",
        "of",
        "the",
        "same",
        "agent",
        "code/main.py",
        "63",
        "%",
        "41",
        "%",
        "1,234",
        "tokens",
        "expected",
    ]
    assert "63% of code/main.py is also in" in section
    assert "<h3>plagiarism</h3>" not in html


def test_an_uninspected_run_has_no_such_section(run: Run) -> None:
    assert "Shared code" not in page(run)


def test_what_was_found_before_the_run_ended_is_not_shown(run: Run) -> None:
    keep(run, record() | {"made_at": "2026-11-02T09:59:59.000+00:00"})
    assert "Shared code" not in page(run)
    keep(run, record() | {"made_at": "2026-11-02T10:00:01.000+00:00"})
    assert "Shared code" in page(run)


def test_a_run_without_code_says_so(run: Run) -> None:
    keep(run, record(says="there is no code", notebooks=[], runs=[]))
    html = page(run)
    assert "There is no code." in html
    assert "<figure>" not in html[html.index('id="run-shared"') : html.index('id="run-files"')]


@pytest.mark.parametrize(
    "value",
    [
        "{",
        "[" * 5000,
        [],
        {"facts": []},
        record(notebooks=5, runs="x"),
        record(notebooks=[5, None, {"name": {"a": 1}, "containment": "x", "passages": [1, {"left": 5}]}]),
        record(notebooks=[match("x" * 10_000, longest=-1e308, unusual="yes")] * 500),
        record(says=["\x1b[31m"], threshold_says={"a": 1}),
        "1" * (2 << 20),
    ],
)
def test_the_page_is_made_whatever_the_record_contains(value: Any, run: Run) -> None:
    keep(run, value)
    html = page(run)
    assert "\x1b" not in html
    assert len(html) < 400_000
    shared = shared_code(run)
    assert shared is None or len(shared.matches) <= 30
