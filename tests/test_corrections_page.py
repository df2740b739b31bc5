"""The page about profile v2 says what the competitions' folders say."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_tables_of_corrections_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    corrections = import_module("corrections")
    page = corrections.PAGE.read_text(encoding="utf-8")
    assert page == corrections.updated(page), "run `python docs/site/corrections.py`"
