"""The site: every page is in the navigation, and what `make docs` builds works from disk, without a network."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser
from support.browsers import IN_A_BROWSER, browser  # noqa: F401

from mlebench.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]
needs_zensical = pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="zensical is not installed: `make docs` installs it"
)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    return import_module("build")


def _paths(navigation: Any) -> Iterator[str]:
    if isinstance(navigation, str):
        yield navigation
    else:
        for item in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from _paths(item)


def test_every_page_is_in_the_navigation(build: ModuleType) -> None:
    configured = tomllib.loads((ROOT / "docs/site/zensical.toml").read_text(encoding="utf-8"))
    listed = list(_paths(configured["project"]["nav"]))
    pages = {page.relative_to(ROOT).as_posix() for page in build.pages()}
    assert sorted(listed) == sorted(page for page in pages if not re.match(r"docs/decisions/\d", page))


def test_every_verb_asks_for_its_options() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- options: (\S+) -->", text)) == sorted(VERBS)


def test_dead_links_and_foreign_hosts_are_faults(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("@import 'https://fonts.example/a.css';")
    (tmp_path / "other.html").write_text('<h2 id="there">There</h2>')
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><script src="https://cdn.example/x.js"></script>'
        '<a href="https://example.org">Others may be linked,</a> <a href="other.html#there">and so may headings.</a>'
        '<a href="other.html#gone">No such heading</a> <a href="gone.html">No such page</a> <img src="gone.png">'
    )
    assert sorted(build.faults(tmp_path)) == [
        "index.html links to gone.html, which does not exist",
        "index.html links to gone.png, which does not exist",
        "index.html links to other.html#gone, which has no such heading",
        "index.html loads https://cdn.example/x.js",
        "style.css loads from another host",
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "docs/site/build.py", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@needs_zensical
@pytest.mark.xdist_group("browser")
def test_generated_parts_are_there(site: Path) -> None:
    commands = (site / "docs/reference/commands.html").read_text(encoding="utf-8")
    assert "mlebench runs cancel [OPTIONS] GROUP" in commands
    assert "--runs-per-gpu" in commands
    assert '<span class="option">--split</span>' in commands
    records = (site / "docs/reference/records.html").read_text(encoding="utf-8")
    assert 'id="grouprecord"' in records
    run = (site / "docs/reference/packages/run.html").read_text(encoding="utf-8")
    assert 'id="mlebench.run.Request"' in run


@needs_zensical
class TestInABrowser:
    pytestmark = IN_A_BROWSER

    def test_search_works_from_disk_and_nothing_is_fetched(self, site: Path, browser: Browser) -> None:  # noqa: F811
        page = browser.new_page()
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("Control+k")
        page.keyboard.type("heartbeat lease")
        page.locator("a[href*='understanding/runs.html']").last.wait_for(timeout=30_000)
        assert [url for url in requested if not url.startswith(("file:", "about:", "data:", "blob:"))] == []
        page.close()

    def test_narrow_pages_do_not_scroll_sideways(self, site: Path, browser: Browser) -> None:  # noqa: F811
        page = browser.new_page(viewport={"width": 420, "height": 900})
        wide = []
        for path in [site / "index.html", *sorted(site.glob("docs/[gru]*/*.html"))]:
            page.goto(path.as_uri())
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                wide.append(os.fspath(path.relative_to(site)))
        page.close()
        assert wide == []
