"""Pages in a real browser, as a reader sees them: contrast, nothing cut, ranks that mean something, paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browsers import IN_A_BROWSER
from support.endpoints import call_of, counted
from support.records import report_of
from support.sites import fill_run, make_group
from support.web_fixtures import COMPETITIONS, Serving, agent, make_runs

from mlebench.gateway.prices import TokenUsage
from mlebench.records import now, write
from mlebench.records.findings import CONDITION, NOTE, VIOLATION, Evidence, Finding, Findings
from mlebench.records.run_groups import Group, Run
from mlebench.records.snapshots import SnapshotScore, SnapshotScores

pytestmark = IN_A_BROWSER
LAPTOP, PHONE = 1400, 420
expect.set_options(timeout=120_000)
ENOUGH = 4.5  # the contrast that WCAG asks of text
NAME = "an-agent-with-a-long-name-2026-11"
MODEL = "provider/some-large-model-20261101-preview"


def _fill(runs: Path, folder: Path) -> Run:
    """Complete a run: files, scores over time, findings, model calls, a second throw."""
    run = next(Group.read(next(runs.glob("*_one"))).runs())
    fill_run(run.paths.root)
    found = [
        Finding(VIOLATION, "hand-labelled", "It wrote predictions by hand.", (Evidence("code/train.py", "y = 1", 3),)),
        Finding(CONDITION, "network", "The network was open."),
    ]
    Findings.of("rules", found, submission="40 rows").write_for(run.paths)
    verdict = Finding(NOTE, "below_median", "score 0.6, median 0.7")
    Findings.of("failures", [verdict], category="below_median", says=verdict.says, also=[]).write_for(run.paths)
    score = report_of(run).score
    points = [SnapshotScore(seconds=seconds, score=score, status="graded") for seconds in (60.0, 900.0)]
    record = run.record
    graded = SnapshotScores(run_id=record.run_id, competition=record.competition, graded_at=now(), points=points)
    write(run.paths.over_time, graded)
    return run.write(
        model=counted(folder, call_of("m", TokenUsage(input=54_321, output=12_345))),
        rerolls=1,
        detail="something <went> wrong",
    )


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind and state; one run has everything that a page can show."""
    folder = tmp_path_factory.mktemp("readable")
    runs = make_runs(folder / "runs")
    make_group(runs, "four", COMPETITIONS[:2], skill=0.5, agent=agent(NAME, MODEL), seeds=2, network="full")
    failed = next(Group.read(next(runs.glob("*_two"))).runs())
    failed.write(ended="infra_error", detail="the disk is full", report=None)
    _fill(runs, folder)
    return runs


@pytest.fixture(scope="module")
def address(completed: Path) -> Iterator[str]:
    with Serving(completed) as served:
        yield served


def _paths(runs: Path) -> list[str]:
    """A page of every kind."""
    group = Group.read(next(runs.glob("*_one")))
    run = next(group.runs()).paths.root.name
    running = next(runs.glob("*_three")).name
    return [
        "index.html",
        "standings/twins.html",
        "grid.html",
        "compare.html",
        "compare/real/one/two.html",
        "competitions.html",
        "competition/random-acts-of-pizza.html",
        "groups.html",
        f"group/{group.record.id}.html",
        f"group/{running}.html",
        f"run/{group.record.id}/{run}.html",
        "no-such.html",
    ]


def _open(browser: Browser, width: int = LAPTOP, **options: Any) -> Page:
    page = browser.new_context(viewport={"width": width, "height": 900}, **options).new_page()
    page.set_default_timeout(120_000)
    return page


# Every piece of text with the colours that it has on the screen: those of its ancestors lie behind one another.
POOR_CONTRAST = """
(least) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (behind, colour, opacity) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.globalAlpha = 1;
    canvas.fillStyle = `rgb(${behind.join(" ")})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.globalAlpha = opacity;
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const box = element.getBoundingClientRect();
    if (!node.textContent.trim() || box.width < 2 || element.closest("option, script, title")) continue;
    if (getComputedStyle(element).visibility === "hidden") continue;
    const ancestors = [];
    for (let one = element; one; one = one.parentElement) ancestors.unshift(getComputedStyle(one));
    let behind = [255, 255, 255], opacity = 1;
    for (const style of ancestors) {
      opacity *= Number(style.opacity);
      behind = over(behind, style.backgroundColor, opacity);
    }
    const style = getComputedStyle(element);
    const text = over(behind, element instanceof SVGElement ? style.fill : style.color, opacity);
    const [dark, light] = [luminance(behind), luminance(text)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    seen += 1;
    if (ratio < least) poor.push([ratio.toFixed(2), element.outerHTML.slice(0, 80)]);
  }
  return { seen, poor };
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(browser: Browser, address: str, completed: Path, scheme: Any) -> None:
    page = _open(browser, color_scheme=scheme)
    for path in _paths(completed):
        page.goto(f"{address}/{path}")
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        found = page.evaluate(POOR_CONTRAST, ENOUGH)
        assert found["seen"] > 10, path
        assert found["poor"] == [], path
        page.evaluate(
            "for (const cell of document.querySelectorAll('tbody tr > *')) cell.style.background = 'var(--hover)'"
        )
        assert page.evaluate(POOR_CONTRAST, ENOUGH)["poor"] == [], f"{path}, with the pointer on a row"
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_mean_and_its_interval_have_colours_that_differ(browser: Browser, address: str, scheme: Any) -> None:
    page = _open(browser, color_scheme=scheme)
    page.goto(f"{address}/index.html")
    bar, band = (
        page.locator(f"table.standings svg .{name}").first.evaluate(
            "(part) => [getComputedStyle(part).fill, getComputedStyle(part).opacity]"
        )
        for name in ("bar", "band")
    )
    assert (bar[1], band[1]) == ("1", "1"), "what lies behind would tint it"
    assert page.evaluate(f"({DISTANCE})({bar[0]!r}, {band[0]!r})") > 150
    page.context.close()


# How far two colours are apart: 0 to 441.
DISTANCE = """
(one, other) => {
  const parts = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  return Math.hypot(...parts(one).map((part, index) => part - parts(other)[index]));
}
"""


# Texts that are wider than the part they are in, which hides the rest.
CUT = """
() => [...document.querySelectorAll("main table *")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible")
  .filter((one) => !one.classList.contains("unseen"))
  .map((one) => one.textContent.trim())
"""


def test_standings_are_not_cut_on_a_laptop(browser: Browser, address: str) -> None:
    page = _open(browser)
    page.goto(f"{address}/index.html")
    assert page.locator(".scroller").first.evaluate("(part) => part.scrollWidth - part.clientWidth") <= 0
    assert page.evaluate(CUT) == []
    headings = page.locator("table.standings thead th").all_inner_texts()
    row = page.locator("table.standings tbody tr:visible", has_text=NAME)
    assert MODEL in row.inner_text()
    assert row.locator("> *").all_inner_texts()[headings.index("Competitions")] == "2"
    page.context.close()


def test_a_dozen_agents_fit_into_the_medal_grid_and_onto_a_sheet(browser: Browser, tmp_path: Path) -> None:
    for number in range(12):
        agent_of = agent("an-agent-with-a-name", MODEL) | {"identity": f"{number:064}"}
        make_group(tmp_path / "runs", f"group{number}", COMPETITIONS, agent=agent_of, limits={"seconds": 60.0 * number})
    with Serving(tmp_path / "runs") as served:
        page = _open(browser)
        page.goto(f"{served}/grid.html")
        hidden = "(part) => part.scrollWidth - part.clientWidth"
        assert page.locator("table.grid thead th").count() == 13
        assert page.locator(".scroller").evaluate(hidden) <= 0
        page.set_viewport_size({"width": 1040, "height": 700})  # about a sheet
        page.emulate_media(media="print")
        assert page.locator(".scroller").evaluate(hidden) <= 0
        page.context.close()


def _ranks(page: Page) -> list[str]:
    return page.locator("table.standings td.rank:visible").all_inner_texts()


def test_entries_over_different_competitions_have_no_ranks(browser: Browser, address: str) -> None:
    page = _open(browser)
    page.goto(f"{address}/index.html")
    assert _ranks(page) == [""] * 4
    note = page.get_by_text("No ranks: these entries were run on different competitions")
    assert note.is_visible()
    page.get_by_label("Model").select_option("model-b")  # two agents, over the same competitions
    assert _ranks(page) == ["1", "2"]
    assert not note.is_visible()
    page.get_by_label("Model").select_option("")
    page.get_by_label("Competitions").select_option("category/Image Classification")  # all were run on its only one
    assert _ranks(page) == ["1", "2", "3", "4"]
    page.context.close()


def test_an_agents_name_leads_to_its_runs(browser: Browser, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    group = make_group(runs, "single", COMPETITIONS, seeds=1, agent=agent("single"))
    for name in ("a", "b"):
        make_group(runs, name, COMPETITIONS, seeds=1, agent=agent("in several groups"))
    with Serving(runs) as address:
        page = _open(browser)
        page.goto(f"{address}/index.html")
        page.locator("table.standings").get_by_role("link", name="single").click()
        page.wait_for_url(f"**/group/{group.name}.html")
        page.goto(f"{address}/index.html")
        page.locator("table.standings").get_by_role("link", name="in several groups").click()
        page.wait_for_url("**/groups.html#*")
        assert page.locator("table.groups tbody tr:visible .agent").all_inner_texts() == ["in several groups"] * 2
        page.context.close()


# Words of labels that are on more than one line.
BROKEN_WORDS = """
() => {
  const broken = [];
  for (const label of document.querySelectorAll("dt, th, .state, .tag, .kind, .what, h2, h3, .agent")) {
    const walker = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const match of node.textContent.matchAll(/[A-Za-z]+/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
}
"""


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_labels_do_not_break_within_words(browser: Browser, address: str, completed: Path, width: int) -> None:
    page = _open(browser, width)
    for path in _paths(completed):
        page.goto(f"{address}/{path}")
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        assert page.evaluate(BROKEN_WORDS) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.context.close()


# Dates, and counts with what follows them, that are on more than one line.
BROKEN_NUMBERS = """
() => {
  const broken = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const match of node.textContent.matchAll(/[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]+\\s×/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(match[0]);
    }
  }
  return broken;
}
"""


def test_dates_and_counts_stay_on_one_line(browser: Browser, address: str, completed: Path) -> None:
    page = _open(browser)
    for path in _paths(completed):
        if path.startswith(("index", "run/")):
            page.goto(f"{address}/{path}")
            assert page.evaluate(BROKEN_NUMBERS) == [], path
    page.context.close()


# Names that lie on a dot of their own lane, or end outside the drawing.
UNREADABLE_NAMES = """
() => {
  const drawing = document.querySelector("svg.leaderboard").getBoundingClientRect();
  const dots = [...document.querySelectorAll("svg.leaderboard .dot")].map((dot) => dot.getBoundingClientRect());
  const touches = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [...document.querySelectorAll("svg.leaderboard .name")].filter((name) => {
    const box = name.getBoundingClientRect();
    return box.right > drawing.right || dots.some((dot) => touches(box, dot));
  }).map((name) => name.textContent);
}
"""


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_names_beside_scores_can_be_read(browser: Browser, address: str, width: int) -> None:
    page = _open(browser, width)
    page.goto(f"{address}/competition/random-acts-of-pizza.html")
    assert page.locator("svg.leaderboard .name", has_text=NAME).count() == 1
    assert page.evaluate(UNREADABLE_NAMES) == []
    page.context.close()


HIDDEN_ON_PAPER = """
() => [...document.querySelectorAll("main *")]
  .filter((one) => !one.classList.contains("unseen") && !one.closest("svg"))
  .filter((one) => ["auto", "scroll", "hidden"].includes(getComputedStyle(one).overflowY))
  .filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.className || one.tagName)
"""


def test_paper_shows_all_rows_and_the_screen_is_as_before(browser: Browser, address: str, completed: Path) -> None:
    page = _open(browser, 1040)  # about the width of a sheet
    for path, rows, words in (
        ("competitions.html", "table.catalogue tbody tr", "pizza"),
        (f"group/{next(completed.glob('*_one')).name}.html", "table.runs tbody tr", "pizza"),
        ("index.html", "table.standings tbody tr[data-scope='given/given']", "one"),
    ):
        page.goto(f"{address}/{path}")
        every, shown = page.locator(rows).count(), page.locator(f"{rows}:visible")
        page.get_by_role("searchbox").fill(words)
        few = shown.count()
        assert 0 < few < every
        page.emulate_media(media="print")
        expect(shown, path).to_have_count(every)
        assert page.locator("tbody tr:visible", has_text="Nothing matches").count() == 0
        assert page.evaluate(HIDDEN_ON_PAPER) == [], path
        assert page.locator("thead th").first.evaluate("(cell) => getComputedStyle(cell).position") != "sticky"
        page.emulate_media(media="screen")
        expect(shown, path).to_have_count(few)
    page.context.close()


def test_standings_on_paper_are_those_of_the_chosen_competitions(browser: Browser, address: str) -> None:
    page = _open(browser)
    page.goto(f"{address}/index.html")
    page.get_by_label("Competitions").select_option("category/Image Classification")
    page.get_by_label("Model").select_option("model-a")
    page.emulate_media(media="print")
    expect(page.locator("table.standings td.rank:visible")).to_have_text(["1", "2", "3", "4"])
    assert page.get_by_text("Competitions: Image Classification").is_visible()
    page.context.close()


def test_collapsed_parts_are_open_on_paper(browser: Browser, address: str, completed: Path) -> None:
    page = _open(browser)
    (path,) = (path for path in _paths(completed) if path.startswith("run/"))
    page.goto(f"{address}/{path}")
    code = page.get_by_text("pd.read_csv('train.csv')").first
    assert not code.is_visible()
    page.emulate_media(media="print")
    expect(page.locator("details:not([open])")).to_have_count(0)
    assert code.is_visible()
    assert page.evaluate(HIDDEN_ON_PAPER) == []
    page.emulate_media(media="screen")
    expect(code).not_to_be_visible()
    page.context.close()


def test_a_reader_who_likes_it_dark_prints_dark_on_white(browser: Browser, address: str) -> None:
    page = _open(browser, color_scheme="dark")
    page.goto(f"{address}/groups.html")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(POOR_CONTRAST, ENOUGH)["poor"] == []
    page.context.close()


def test_a_missing_page_leads_back(browser: Browser, address: str) -> None:
    page = _open(browser)
    answer = page.goto(f"{address}/run/no/such/page.html")
    assert answer is not None
    assert answer.status == 404
    assert page.evaluate("getComputedStyle(document.body).display") == "flex", "the stylesheet is found"
    page.get_by_role("main").get_by_role("link", name="runs").click()
    page.wait_for_url(f"{address}/groups.html")
    page.context.close()
