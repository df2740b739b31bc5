"""The pages in a real browser: sorting, filtering, keyboard, live update, and nothing in the console."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page
from support.browsers import IN_A_BROWSER
from support.sites import fill_run, make_group
from support.web_fixtures import COMPETITIONS, Serving

from mlebench.core.paths import trajectory
from mlebench.records.run_groups import Group

pytestmark = IN_A_BROWSER


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Anything a page prints in the console, or requests from another host, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: said.append(request.url) if _is_elsewhere(request.url) else None)
    yield opened
    context.close()
    assert said == []


def _is_elsewhere(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1", "file://", "data:"))


def _agents(page: Page) -> list[str]:
    return page.locator("table.standings tbody tr:visible .agent").all_inner_texts()


def test_standings_are_sorted_by_a_click_and_by_keyboard(page: Page, served: str) -> None:
    page.goto(f"{served}/index.html")
    assert _agents(page) == ["one", "two", "three"]
    heading = page.locator("table.standings").get_by_role("columnheader", name="Agent")
    heading.get_by_role("button").click()
    assert _agents(page) == ["one", "three", "two"]
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert _agents(page) == ["two", "three", "one"]
    assert page.locator("td.rank:visible").all_inner_texts() == ["1", "2", "3"]


def test_standings_are_filtered_and_the_address_remembers(page: Page, served: str) -> None:
    page.goto(f"{served}/index.html")
    page.get_by_label("Model").select_option("model-b")
    assert _agents(page) == ["two", "three"]
    page.get_by_label("sealed runs only").check()
    assert _agents(page) == ["three"]
    page.reload()
    assert _agents(page) == ["three"]
    page.get_by_role("searchbox").fill("nobody")
    assert _agents(page) == []
    assert page.get_by_text("Nothing matches these filters.").is_visible()


def test_categories_can_be_chosen(page: Page, served: str) -> None:
    page.goto(f"{served}/index.html")
    whole = page.locator("table.standings tbody tr:visible .figure").first.inner_text()
    page.get_by_label("Competitions").select_option("category/Image Classification")
    assert len(_agents(page)) == 3
    assert page.locator("table.standings tbody tr:visible .figure").first.inner_text() != whole


def test_catalogue_is_searched(page: Page, served: str) -> None:
    page.goto(f"{served}/competitions.html")
    page.get_by_role("searchbox").fill("auc pizza")
    assert page.locator("table.catalogue tbody tr:visible a").all_inner_texts() == ["Random Acts of Pizza"]
    assert page.locator("[data-count]").inner_text() == "1"
    page.get_by_role("link", name="Random Acts of Pizza").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Random Acts of Pizza"
    assert page.locator("svg.leaderboard circle").count() > 5


def test_two_agents_are_chosen_and_compared(page: Page, served: str) -> None:
    page.goto(f"{served}/compare.html")
    page.get_by_label("First entry").first.select_option("two")
    page.get_by_label("Second entry").first.select_option("three")
    page.get_by_role("button", name="Compare").first.click()
    page.wait_for_url("**/compare/real/two/three.html")
    assert page.get_by_role("heading", level=1).inner_text().split() == ["two", "and", "three"]


def test_pages_follow_runs_in_progress(page: Page, own_runs: Path) -> None:
    with Serving(own_runs) as address:
        page.goto(f"{address}/index.html")
        row = page.locator("tbody tr:visible", has_text="three")
        assert "1 running, 1 to come" in row.inner_text()
        page.locator("table.standings").get_by_role("columnheader", name="Agent").get_by_role("button").click()
        for path in own_runs.glob("*three/*/run.json"):
            record = json.loads(path.read_bytes())
            done: dict[str, Any] = json.loads(
                next(own_runs.glob(f"*one/{record['competition']}_*/run.json")).read_bytes()
            )
            path.write_text(json.dumps(done | {"run_id": record["run_id"], "seed": 0}))
        row.get_by_text("running").wait_for(state="hidden")
        assert row.locator(".figure").count() == 1
        assert _agents(page) == ["one", "three", "two"]  # as the reader had sorted them
        page.goto("about:blank")  # before the server stops answering


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, served: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.set_default_timeout(120_000)
    for path in (
        "index",
        "grid",
        "compare",
        "compare/real/one/two",
        "competitions",
        "competition/random-acts-of-pizza",
    ):
        page.goto(f"{served}/{path}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    context.close()


def test_names_without_blanks_do_not_widen_pages(browser: Browser, tmp_path: Path) -> None:
    """Agents choose their names, and what they write in their story."""
    name = "W" * 250
    made = {"name": name, "identity": name, "model": name, "scaffold": None}
    group = Group.read(make_group(tmp_path / "runs", "long", COMPETITIONS, seeds=1, agent=made))
    for run in group.runs():
        fill_run(run.paths.root)
        trajectory(run.paths.logs).write_text(json.dumps({"kind": name, "time": 1, "text": name}) + "\n")
        run.write(conditions=replace(run.record.conditions, kept={name: name}))
    run = f"run/{group.record.id}/{next(group.runs()).paths.root.name}.html"
    with Serving(tmp_path / "runs") as address:
        for width in (1280, 360):
            page = browser.new_page(viewport={"width": width, "height": 800})
            page.set_default_timeout(120_000)
            for path in ("index.html", f"group/{group.record.id}.html", run):
                page.goto(f"{address}/{path}")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            page.close()


def test_pages_work_from_disk(page: Page, runs: Path, tmp_path: Path) -> None:
    from mlebench.cli import main

    groups = [str(path) for path in runs.iterdir() if "dummy" not in path.name]
    with pytest.raises(SystemExit):
        main(["report", *groups, "--format", "html", "-o", str(tmp_path / "out")])
    page.goto((tmp_path / "out" / "index.html").as_uri())
    page.locator("table.standings").get_by_role("columnheader", name="Agent").get_by_role("button").click()
    assert _agents(page) == ["one", "three", "two"]
    assert page.evaluate("getComputedStyle(document.body).display") == "flex"  # the stylesheet is there
