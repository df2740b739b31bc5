"""Pages as files: all of them, complete, harmless, and with the figures that `mlebench report` has."""

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

import pytest
from support.sites import make_group

from mlebench.cli import main
from mlebench.core.paths import COMPETITION_PATH_VARIABLE
from mlebench.registry import Registry
from mlebench.web.pages import page_at, paths_of
from mlebench.web.render import to_html
from mlebench.web.site import Site
from mlebench.web.site_reader import SiteReader

PIZZA_PAGE = "competition/random-acts-of-pizza.html"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"'&"


def call(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    assert (end.value.code or 0) == code, streams.err
    return streams.out + streams.err


class Links(HTMLParser):
    """Where a page leads, what it loads, and what it might run."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("src", "href", "action", "srcset", "data"):
                self.loads.append(value or "")
            elif name.startswith("on") or name == "style":
                self.inline.append(f"{tag} {name}={value}")
        if tag in ("script", "style") and not any(name == "src" for name, _ in attrs):
            self.inline.append(tag)


@pytest.fixture(scope="module")
def written(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "out"
    groups = [path for path in sorted(runs.iterdir()) if "dummy" not in path.name]
    with pytest.raises(SystemExit) as end:
        main(["report", *map(str, groups), "--published", "--format", "html", "-o", str(folder)])
    assert not end.value.code
    return folder


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(written: Path) -> None:
    pages = list(written.rglob("*.html"))
    assert len(pages) > 82
    for page in pages:
        found = Links(page.read_text(encoding="utf-8"))
        assert found.inline == [], page
        base = page.relative_to(written).as_posix()
        for load in found.loads:
            assert "://" not in load, (page, load)
            assert (written / urljoin(base, load)).is_file(), (page, load)
        for link in found.links:
            if not link.startswith(("http://", "https://", "#")):
                assert (written / unquote(urljoin(base, link)).partition("#")[0]).is_file(), (page, link)


def test_what_a_killed_process_left_is_removed_when_pages_are_written_again(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("report", min(runs.iterdir()), "--format", "html", "-o", tmp_path / "out")
    call(capsys, *command)
    files = set(tmp_path.rglob("*"))
    page = next(path for path in files if path.suffix == ".html")
    remains = page.with_name(f"{page.name}.mlebench-part-9")
    remains.touch()
    os.utime(remains, (0, 0))
    call(capsys, *command)
    assert set(tmp_path.rglob("*")) == files


def test_every_page_has_its_data_beside_it(written: Path) -> None:
    for page in written.rglob("*.html"):
        assert json.loads(page.with_suffix(".json").read_bytes())["mlebench"], page


def test_the_standings_are_those_of_the_report(
    written: Path, runs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    groups = [path for path in sorted(runs.iterdir()) if "dummy" not in path.name]
    call(capsys, "report", *groups, "--format", "json", "-o", tmp_path / "r.json")
    expected = json.loads((tmp_path / "r.json").read_bytes())
    shown = json.loads((written / "index.json").read_bytes())
    names = {entry["slug"]: entry["agent"] for entry in shown["entries"]}
    ours: dict[Any, Any] = {(names[row["entry"]], row["kind"], row["name"]): row["figures"] for row in shown["rows"]}
    theirs = {
        (entry["agent"], scope["kind"], scope["name"]): scope["figures"]
        for entry in expected["entries"]
        for scope in entry["scopes"]
    }
    assert ours == theirs
    page = (written / "index.html").read_text(encoding="utf-8")
    figure = next(value["any_medal"] for value in theirs.values() if value["any_medal"])
    assert f"{figure['mean']:.1f}" in page
    assert len(shown["published"]) == 26


def test_only_pages_are_overwritten(
    written: Path, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (group, *_) = sorted(runs.iterdir())
    (tmp_path / "precious.txt").write_text("mine")
    said = call(capsys, "report", group, "--format", "html", "-o", tmp_path, code=1)
    assert "not empty" in said
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    call(capsys, "report", group, "--format", "html", "-o", tmp_path / "new")
    call(capsys, "report", group, "--format", "html", "-o", tmp_path / "new")


def test_reports_alone_make_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = [{"competition_id": "random-acts-of-pizza", "score": 0.9, "gold_threshold": 0.97, "gold_medal": False}]
    (tmp_path / "r_grading_report.json").write_text(json.dumps({"competition_reports": reports}))
    call(capsys, "report", tmp_path / "r_grading_report.json", "--format", "html", "-o", tmp_path / "out")
    assert "reports" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    for page in (tmp_path / "out").rglob("*.html"):
        found = Links(page.read_text(encoding="utf-8"))
        assert not any("run/" in link for link in found.links)


def test_html_needs_a_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "-o" in call(capsys, "report", next(runs.iterdir()), "--format", "html", code=2)


def test_markup_in_names_and_descriptions_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "own" / "evil"
    folder.mkdir(parents=True)
    source = Registry().get_competition("spaceship-titanic").folder
    for name in ("leaderboard.csv", "grade.py", "prepare.py"):
        (folder / name).write_bytes((source / name).read_bytes())
    config = (source / "config.yaml").read_text().replace("spaceship-titanic", "evil")
    config = config.replace("name: Spaceship Titanic", f"name: {json.dumps(HOSTILE)}")
    issues = [HOSTILE, {"id": HOSTILE, "kind": "leak", "text": HOSTILE}]
    (folder / "config.yaml").write_text(config.partition("known_issues:")[0] + f"known_issues: {json.dumps(issues)}\n")
    links = "[a](javascript:alert(3)) [b](data:text/html,x) ![c](https://elsewhere.example/x.png)"
    (folder / "description.md").write_text(f"# x\n\n---\n\n{HOSTILE}\n\n{links}\n")
    monkeypatch.setenv(COMPETITION_PATH_VARIABLE, str(tmp_path / "own"))
    hostile = {"name": HOSTILE, "identity": "1", "model": HOSTILE, "scaffold": None}
    make_group(tmp_path / "runs", "x", ["evil"], seeds=1, agent=hostile)
    make_group(tmp_path / "runs", "y", ["evil"], seeds=1, agent={**hostile, "name": "y"})
    site = SiteReader([tmp_path / "runs"], Registry(tmp_path / "data")).site()
    for path in ("index.html", "grid.html", "compare.html", "competitions.html", "competition/evil.html"):
        page = page_at(site, path)
        assert page is not None
        text = to_html(page, site)
        found = Links(text)
        assert found.inline == []
        assert "alert(1)" in text
        assert all("elsewhere" not in load for load in found.loads)
        assert not any(link.startswith(("javascript:", "data:")) for link in found.links)


def test_a_competition_page_lists_known_issues_by_id_and_kind(runs: Path) -> None:
    text = _text(SiteReader([runs], Registry(runs.parent / "data")).site(), PIZZA_PAGE)
    assert "<strong>L6</strong> leak: The public test.json keeps giver_username_if_known" in text


def test_kinds_of_data_have_separate_standings(runs: Path) -> None:
    site = SiteReader([runs], Registry(runs.parent / "data")).site()
    assert [section.name for section in site.sections] == ["real", "twins"]
    home, twins = page_at(site, "index.html"), page_at(site, "standings/twins.html")
    assert home is not None
    assert twins is not None
    assert {entry["agent"] for entry in twins.data["entries"]} == {"dummy"}
    assert "dummy" not in {entry["agent"] for entry in home.data["entries"]}


def test_unreadable_parts_are_reported_and_the_rest_is_shown(own_runs: Path) -> None:
    (run, *_) = sorted(own_runs.glob("*one/*/run.json"))
    run.write_text("{")
    site = SiteReader([own_runs], Registry(own_runs.parent / "data")).site()
    page = page_at(site, "index.html")
    assert page is not None
    assert str(run) in to_html(page, site)
    assert {entry["name"] for entry in page.data["entries"]} == {"one", "two", "three"}


def _text(site: Site, path: str) -> str:
    page = page_at(site, path)
    assert page is not None, path
    return to_html(page, site)


def test_agents_without_models_are_compared_without_a_word_about_models(tmp_path: Path) -> None:
    for name, model in (("a", None), ("b", None), ("c", "some-model")):
        agent = {"name": name, "identity": name, "model": model, "scaffold": None}
        make_group(tmp_path / "runs", name, ["random-acts-of-pizza"], seeds=1, agent=agent)
    site = SiteReader([tmp_path / "runs"], Registry(tmp_path / "data")).site()
    assert "no model" not in _text(site, "compare/real/a/b.html")
    assert re.search(r"% interval −\d", _text(site, "compare/real/a/b.html"))
    assert "c uses some-model. 1 competition in common." in _text(site, "compare/real/a/c.html")


def test_pages_name_entries_by_their_labels_and_do_not_repeat_them(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name, model, hours in (("a", "model-a", 1), ("b", "model-b", 2), ("c", None, 1)):
        agent = {"name": "mine", "identity": "mine", "model": model, "scaffold": None}
        limits = {"seconds": 3600.0 * hours, "cpus": 2.0}
        make_group(runs, name, ["random-acts-of-pizza"], seeds=1, agent=agent, limits=limits)
    names = ["mine, model-a, 1 h", "mine, model-b, 2 h", "mine, 1 h"]
    one, other, _ = (re.sub("[^a-z0-9]+", "-", name) for name in names)
    site = SiteReader([runs], Registry(tmp_path / "data")).site()
    pages = {
        path: re.sub(r"<[^>]*>", " ", _text(site, path))
        for path in ("index.html", "grid.html", "compare.html", f"compare/real/{one}/{other}.html", PIZZA_PAGE)
    }
    for path, text in pages.items():
        expected = names[:2] if path.startswith("compare/") else names
        assert [name for name in expected if name not in text] == [], path
        beside = text.replace(names[0], "")
        assert beside.count("model-a") == (path == "index.html"), path  # a choice of the filter
    facts = re.findall(r'<span class="facts">(.*?)</th>', _text(site, "index.html"), re.DOTALL)
    assert {" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in facts} == {"", "no model"}


def test_runs_without_standings_are_not_called_nothing(tmp_path: Path) -> None:
    """A group that was copied is there twice, so that there can be no standings."""
    group = make_group(tmp_path / "runs", "one", ["random-acts-of-pizza"], seeds=2)
    shutil.copytree(group, group.with_name("copy"))
    site = SiteReader([tmp_path / "runs"], Registry(tmp_path / "data")).site()
    for path in ("index.html", "grid.html", "compare.html"):
        text = _text(site, path)
        assert "is given twice" in text
        assert "Nothing has been run yet" not in text
        assert 'href="groups.html">' in text.partition("<main")[2]
    assert "4 runs in 2 groups" in _text(site, "index.html")


def test_standings_of_reports_do_not_say_that_nothing_has_been_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = make_group(tmp_path / "runs", "one", ["random-acts-of-pizza"], seeds=2)
    reports = [json.loads(path.read_bytes())["report"] for path in group.glob("*/run.json")]
    (tmp_path / "r_grading_report.json").write_text(json.dumps({"competition_reports": reports}))
    call(capsys, "report", tmp_path / "r_grading_report.json", "--format", "html", "-o", tmp_path / "out")
    text = (tmp_path / "out" / "groups.html").read_text(encoding="utf-8")
    assert "Nothing has been run yet" not in text
    assert "come from grading reports" in text


def test_nothing_run_yet(tmp_path: Path) -> None:
    site = SiteReader([tmp_path], Registry(tmp_path)).site()
    for path in paths_of(site):
        assert page_at(site, path) is not None
    page = page_at(site, "index.html")
    assert page is not None
    assert "Nothing has been run yet" in to_html(page, site)


def test_badges_of_medals_are_on_the_standings_and_the_competition_page(tmp_path: Path) -> None:
    make_group(tmp_path / "runs", "good", ["random-acts-of-pizza", "leaf-classification"], skill=2, seeds=2)
    site = SiteReader([tmp_path / "runs"], Registry(tmp_path / "data")).site()
    standings, competition, other = (
        page_at(site, path) for path in ("index.html", PIZZA_PAGE, "competition/leaf-classification.html")
    )
    assert standings is not None
    assert competition is not None
    assert other is not None
    (row,) = standings.data["badges"]
    medals = row["medals"]
    assert (row["competition"], [badge["badge"] for badge in row["badges"]]) == ("random-acts-of-pizza", ["L6"])
    assert row["badges"][0]["medals"] == medals > 0
    assert {one["badged"] for one in standings.data["rows"] if one["kind"] == "given"} == {medals}
    assert f"{medals} of " in to_html(standings, site)
    for page, labels in ((competition, {"L6"}), (other, set())):
        runs = [run for agent in page.data["boards"][0]["agents"] for run in agent["runs"]]
        medalled = [run for run in runs if run["result"] in ("gold", "silver", "bronze")]
        assert medalled
        assert all({badge["issue"] for badge in run["badges"]} == labels for run in medalled)
        assert all(run["badges"] == [] for run in runs if run not in medalled)
        assert ("not a verdict" in to_html(page, site)) == bool(labels)
