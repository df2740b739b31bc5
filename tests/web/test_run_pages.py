"""Pages of run groups and runs: their figures are the records', and what agents left cannot do harm."""

import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict, replace
from support.endpoints import call_of, counted
from support.records import TIME, report_of, write_record
from support.sites import fill_run, make_group

from mlebench.core.paths import FINDINGS, GroupPaths, RunPaths, trajectory, usage_file
from mlebench.core.untrusted import FileMissingError, open_below
from mlebench.gateway.accounting import FinishedCall
from mlebench.gateway.prices import TokenUsage
from mlebench.records import write
from mlebench.records.base import seconds_of
from mlebench.records.findings import NOTE, VIOLATION, Evidence, Finding, Findings
from mlebench.records.run import Attempt
from mlebench.records.run_groups import Group, Run
from mlebench.records.snapshots import SnapshotScores
from mlebench.records.usage import ModelOutage, ModelUsage
from mlebench.registry import Registry
from mlebench.web.pages import group as group_pages
from mlebench.web.pages import page_at, paths_of
from mlebench.web.record_values import fact_rows
from mlebench.web.render import to_html, to_json
from mlebench.web.run_files import MOST_FILES, listing
from mlebench.web.site import Page, Site
from mlebench.web.site_reader import SiteReader

IDS = ["spooky-author-identification", "leaf-classification", "dog-breed-identification"]


def site_of(runs_dir: Path, *, live: bool = False, files: bool = False) -> Site:
    groups = [Group.read(folder) for folder in sorted(runs_dir.iterdir())]
    return Site([], groups, Registry(runs_dir.parent / "data"), live=live, files=files)


def page_of(site: Site, path: str) -> Page:
    page = page_at(site, path)
    assert page is not None, path
    return page


def made(page: Page, site: Site) -> str:
    """The page's HTML; its data must be JSON that any program reads, too."""
    json.loads(to_json(page), parse_constant=pytest.fail)
    text = to_html(page, site)
    text.encode()
    return text


def first_run(group: Path, state: str = "ended") -> Run:
    return next(run for run in Group.read(group).runs() if run.record.state == state)


def run_path(run: Run) -> str:
    return f"run/{run.paths.root.parent.name}/{run.paths.root.name}.html"


def made_run(run: Run, **options: Any) -> str:
    site = site_of(run.paths.root.parent.parent, **options)
    return made(page_of(site, run_path(run)), site)


def data_of(run: Run, **options: Any) -> dict[str, Any]:
    return page_of(site_of(run.paths.root.parent.parent, **options), run_path(run)).data


def words(html: str) -> str:
    """What a reader sees, roughly."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.partition("<main")[2]).split())


@pytest.fixture
def ended(tmp_path: Path) -> Run:
    return first_run(make_group(tmp_path / "runs", "good", IDS, skill=0.9, seeds=1))


def test_groups_newest_first_with_their_progress_and_medals(tmp_path: Path) -> None:
    old = make_group(tmp_path / "runs", "old", IDS, skill=1.2)
    new = make_group(tmp_path / "runs", "new", IDS, states=("ended", "running", "planned"))
    write(GroupPaths(old).record, Group.read(old).record.changed(created_at="2026-01-01T00:00:00.000+00:00"))
    for run in Group.read(new).runs():
        if run.record.seed == 0 and run.record.state == "ended":
            run.write(ended="agent_error")
    site = site_of(tmp_path / "runs", live=True)
    page = page_of(site, "groups.html")
    rows = page.data["groups"]
    assert [row["name"] for row in rows] == [new.name, old.name]
    assert rows[0]["counts"] == {"runs": 9, "ended": 2, "failed": 1, "damaged": 0, "running": 3, "planned": 3}
    medals = [report_of(run).medal for run in Group.read(old).runs()]
    won = {name: medals.count(name) for name in ("gold", "silver", "bronze")}
    assert rows[1]["medals"] == won
    assert won["gold"] > 0
    assert page.live
    text = words(made(page, site))
    assert "3 of 9 ended, 1 failed , 3 running , 3 to come" in text
    assert "3 × 3" in text


def test_groups_of_one_agent_say_how_they_differ_and_those_alike_say_the_same(tmp_path: Path) -> None:
    agent = {"name": "mine", "identity": "1", "model": None, "scaffold": None}
    for name, hours in (("short", 1), ("long", 4), ("again", 4)):
        make_group(tmp_path / "runs", name, IDS[:1], seeds=1, agent=agent, limits={"seconds": 3600.0 * hours})
    make_group(tmp_path / "runs", "single", IDS[:1], seeds=1, network="full")
    site = site_of(tmp_path / "runs")
    page = page_of(site, "groups.html")
    labels = {row["name"].rpartition("_")[2]: row["label"] for row in page.data["groups"]}
    assert labels == {"short": ["1 h"], "long": ["4 h"], "again": ["4 h"], "single": []}
    text = words(made(page, site))
    assert text.count("mine 4 h 1 of 1 ended") == 2
    assert "single network full 1 of 1 ended" in text


def test_a_site_without_groups_has_a_page(tmp_path: Path) -> None:
    site = Site([], [], Registry(tmp_path))
    assert "Nothing has been run yet" in made(page_of(site, "groups.html"), site)


def test_a_group_shows_every_run_as_its_record_has_it(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "some", IDS, states=("ended", "ended", "running", "planned"))
    site = site_of(tmp_path / "runs")
    page = page_of(site, f"group/{group.name}.html")
    runs = list(Group.read(group).runs())
    assert [row["run"] for row in page.data["rows"]] == [run.paths.root.name for run in runs]
    for row, run in zip(page.data["rows"], runs, strict=True):
        score, medal = (run.record.report.score, run.record.report.medal) if run.record.report else (None, None)
        assert (row["state"], row["score"], row["seed"]) == (run.record.state, score, run.record.seed)
        assert medal in (None, row["result"])
        assert run_path(run) in paths_of(site)
        assert page_of(site, run_path(run))
    html = made(page, site)
    assert all(f'href="../{run_path(run)}"' in html for run in runs)
    assert not page.live, "a page on disk asks nobody for news"


def test_failures_are_at_the_top_with_the_reason(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "sick", IDS, seeds=2)
    one, two, three, *_ = Group.read(group).runs()
    for run in (one, two):
        run.write(ended="infra_error", detail="the disk <b>is full", report=None)
    three.write(report=replace(report_of(three), status="invalid", reason="column \x1b[31m`x` is missing"))
    site = site_of(tmp_path / "runs")
    page = page_of(site, f"group/{group.name}.html")
    assert [(one["kind"], one["count"]) for one in page.data["failures"]] == [("infra_error", 2), ("invalid", 1)]
    html = made(page, site)
    assert "the disk &lt;b&gt;is full" in html
    assert "column `x` is missing" in html
    assert f"mlebench run --resume {group.name} --retry infra" in html


def test_large_groups_have_several_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_pages, "MOST_ROWS", 4)
    group = make_group(tmp_path / "runs", "large", IDS, seeds=3)
    site = site_of(tmp_path / "runs")
    paths = [path for path in paths_of(site) if path.startswith("group/")]
    assert paths == [f"group/{group.name}.html", f"group/{group.name}/2.html", f"group/{group.name}/3.html"]
    names = [row["run"] for path in paths for row in page_of(site, path).data["rows"]]
    assert names == [run.paths.root.name for run in Group.read(group).runs()]
    assert page_at(site, f"group/{group.name}/4.html") is None
    assert f'href="../../{paths[2]}"' in made(page_of(site, paths[1]), site)
    assert "Page 2 of 3: 4 of 9 runs." in made(page_of(site, paths[1]), site), "for those who print it"


@pytest.mark.parametrize("state", ["planned", "running", "ended"])
def test_a_run_in_every_state_has_a_page(tmp_path: Path, state: str) -> None:
    run = first_run(make_group(tmp_path / "runs", "some", IDS, states=(state,)), state)
    site = site_of(tmp_path / "runs", live=True)
    page = page_of(site, run_path(run))
    assert page.live is (state != "ended")
    shown = words(made(page, site))
    assert any(word in shown for word in (state, run.record.ended) if word)


@pytest.mark.parametrize("ended", ["finished", "timeout", "agent_error", "out_of_memory", "over_disk", "infra_error"])
def test_a_runs_page_says_how_it_ended(tmp_path: Path, ended: str) -> None:
    run = first_run(make_group(tmp_path / "runs", "some", IDS[:1], seeds=1))
    run.write(ended=ended, detail="as <i>told</i>", report=None)
    text = made_run(run)
    assert ended.replace("_", " ") in words(text)
    assert "As &lt;i&gt;told&lt;/i&gt;." in text


def test_the_figures_of_a_run_are_those_of_its_record(ended: Run) -> None:
    ended.write(report=replace(report_of(ended), percentile=0.8125, teams=1600, teams_beaten=1300))
    report = asdict(report_of(Run.read(ended.paths.root)))
    data = data_of(ended)
    assert data["glance"]["score"] == report["score"]
    assert data["glance"]["thresholds"] == {
        name: report[f"{name}_threshold"] for name in ("gold", "silver", "bronze", "median")
    }
    text = words(made_run(ended))
    assert "81.2" in text
    assert "beats 1,300 of 1,600 teams" in text
    assert all(name.replace("_", " ") in text for name in report if name != "mlebench")


def test_badges_stand_beside_the_medal_of_a_run_and_lead_to_the_issue(tmp_path: Path) -> None:
    run = first_run(make_group(tmp_path / "runs", "good", ["random-acts-of-pizza"], skill=2, seeds=1))
    assert report_of(run).medal
    run.write(report=replace(report_of(run), medal_holds=0.61, test_units=500))
    assert [badge["issue"] or badge["kind"] for badge in data_of(run)["glance"]["badges"]] == ["L6", "low_power"]
    site = site_of(tmp_path / "runs")
    html = made(page_of(site, run_path(run)), site)
    assert "It may have had help from L6: " in words(html)
    assert "It may be chance: the medal holds in 61.0% of resamples, less than 80%." in words(html)
    (issue,) = re.findall(r'href="../../(competition/random-acts-of-pizza.html)#(issue-L6)"', html)
    assert f'id="{issue[1]}"' in made(page_of(site, issue[0]), site)


def test_a_run_has_the_badges_of_its_own_profile_and_none_without_a_medal(tmp_path: Path) -> None:
    run = first_run(make_group(tmp_path / "runs", "good", ["random-acts-of-pizza"], skill=2, seeds=1))
    run.write(report=replace(report_of(run), profile="v2"))
    assert data_of(run)["glance"]["badges"] == []  # v2 has no such leak
    run.write(report=replace(report_of(run), profile="v1", gold_medal=False, silver_medal=False, bronze_medal=False))
    assert data_of(run)["glance"]["badges"] == []


def failed_on(host: str) -> Attempt:
    return Attempt(
        number=1,
        token="a",
        host=host,
        started_at="2026-11-01T09:00:00.000+00:00",
        ended="infra_error",
        detail="no disk",
        ended_at="2026-11-01T09:30:00.000+00:00",
    )


def test_attempts_and_submissions_in_order_of_time(ended: Run) -> None:
    ended.write(attempts=[failed_on("node<1>"), replace(ended.record.attempts[0], number=2)])
    fill_run(ended.paths.root, submissions=(60.0, 900.0, 4000.0))
    data = data_of(ended)
    told = [event["text"] for event in data["timeline"]["events"]]
    assert told[1:4] == ["Attempt 1 on node<1>", "Attempt 1 ended: infra error", "Attempt 2 on node1"]
    assert told[-1] == "Ended: finished"
    assert [one["seconds"] for one in data["kept"]] == [60, 900, 4000]
    text = made_run(ended)
    assert "node&lt;1&gt;" in text
    assert f"mlebench grade {ended.paths.root.parent.name} --snapshots" in text


def test_everything_in_a_run_is_told_by_one_clock(ended: Run) -> None:
    """Its zero is the agent's start: a sandbox may take minutes to start, and an earlier attempt may have failed."""
    two_minutes_later = "2026-11-01T10:02:05.000+00:00"
    last = replace(ended.record.attempts[0], number=2, agent_started_at=two_minutes_later)
    run = ended.write(attempts=[failed_on("node1"), last])
    fill_run(run.paths.root, submissions=(60.0,))
    submitted = {"kind": "submission", "time": seconds_of("2026-11-01T10:03:05+00:00"), "path": "submission.csv"}
    trajectory(run.paths.logs).write_text(json.dumps(submitted) + "\n")
    data = data_of(run)
    after = {event["text"]: event["after"] for event in data["timeline"]["events"]}
    assert after["Agent started"] == 0
    assert after["Attempt 2 on node1"] == -120
    assert after["Submission kept"] == data["kept"][0]["seconds"] == data["story"]["events"][0]["after"] == 60
    text = words(made_run(run))
    assert text.count("+ 1 min 0 s") == 4, "in the timeline, as a score and a moment, in the story"
    assert "− 2 min 0 s" in text


def test_the_time_of_a_run_in_progress_counts_from_its_agents_start(tmp_path: Path) -> None:
    run = first_run(make_group(tmp_path / "runs", "live", IDS[:1], states=("running",)), "running")
    later = datetime.now(UTC).isoformat()
    run.write(attempts=[replace(run.record.attempts[0], agent_started_at=later)])
    assert data_of(run)["seconds"] < (datetime.now(UTC) - datetime.fromisoformat(later)).total_seconds() + 1


def test_scores_of_kept_submissions_are_drawn_once_they_are_known(ended: Run) -> None:
    fill_run(ended.paths.root, submissions=(60.0, 900.0))
    points = [
        {"seconds": 60.0, "score": 0.5, "status": "graded"},
        {"seconds": 900.0, "score": None, "status": "invalid"},
    ]
    same = {"run_id": ended.record.run_id, "competition": ended.record.competition, "graded_at": TIME}
    write_record(ended.paths.over_time, SnapshotScores, **same, points=points)
    assert data_of(ended)["scores"] == points
    text = made_run(ended)
    assert "0.5 after 60 s" in text
    assert "--snapshots" not in text


def test_the_last_submission_of_a_run_is_within_its_drawing(ended: Run) -> None:
    # It is taken when the agent has ended, so it can be later than the run was long.
    run = ended.write(seconds=3.7)
    fill_run(run.paths.root, submissions=(3.9,))
    points = [{"seconds": 3.9, "score": 0.5, "status": "graded"}]
    same = {"run_id": run.record.run_id, "competition": run.record.competition, "graded_at": TIME}
    write_record(run.paths.over_time, SnapshotScores, **same, points=points)
    assert " 0 s + 3.9 s" in words(made_run(run))


def test_a_score_off_the_scale_is_drawn_at_the_edge(ended: Run) -> None:
    report = report_of(ended)
    gold, median = report.gold_threshold or 0, report.median_threshold or 0
    ended.write(report=replace(report, score=median - 100 * (gold - median)))
    assert "far off the scale" in made_run(ended)
    ended.write(report=replace(report, score=median))
    assert "far off the scale" not in made_run(ended)


def test_story_code_submission_and_files(ended: Run) -> None:
    fill_run(ended.paths.root)
    data = data_of(ended)
    assert [event["kind"] for event in data["story"]["events"][:4]] == ["start", "thought", "call", "action"]
    assert data["submission"]["header"] == ["id", "target"]
    assert len(data["submission"]["rows"]) == 10
    assert {file["name"] for file in data["code"]} == {"train.py", "features/build.py"}
    folders = {one["folder"]: one["count"] for one in data["files"]}
    assert folders == {"submission": 1, "logs": 1, "code": 2, "snapshots": 3}
    text = made_run(ended)
    assert "python train.py --fold 3" in text
    assert "epoch 399" in text


def test_files_are_linked_only_where_they_are_served(ended: Run) -> None:
    fill_run(ended.paths.root)
    (ended.paths.code / "a b#?.py").write_text("pass")
    group, run = ended.paths.root.parent.name, ended.paths.root.name
    assert "files/" not in made_run(ended)
    assert f'href="../../files/{group}/{run}/code/a%20b%23%3F.py"' in made_run(ended, files=True)


def test_findings_are_shown_whatever_they_contain(ended: Run) -> None:
    folder = ended.paths.root / FINDINGS
    folder.mkdir()
    (folder / "rules.json").write_text('{"verdict": "<b>clean", "signs": [{"file": "x.py"}], "share": NaN}')
    (folder / "list.json").write_text('["a", 1]')
    (folder / "deep.json").write_text("[" * 100_000)
    text = words(made_run(ended))
    assert "verdict &lt;b&gt;clean signs file: x.py share –" in text
    assert "found a, 1" in text


def test_findings_are_sentences_with_their_evidence(ended: Run) -> None:
    quotes = tuple(Evidence("code/<x>.py", f"label[{number}] = 1", number) for number in range(1, 9))
    found = [Finding(VIOLATION, "hand-labelled", "It wrote predictions by hand.", quotes)]
    Findings.of("rules", found, texts=3).write_for(ended.paths)
    verdict = Finding(NOTE, "below_median", "score 0.6, median 0.7")
    Findings.of("failures", [verdict], category="below_median", says=verdict.says, also=[]).write_for(ended.paths)
    Findings.of("nothing", [], texts=3).write_for(ended.paths)
    text = words(made_run(ended))
    assert "violation It wrote predictions by hand. hand-labelled code/&lt;x&gt;.py, line 1 label[1] = 1" in text
    assert "and 3 more places" in text
    assert "UTC Below median: score 0.6, median 0.7. The whole record" in text
    assert "UTC Nothing was found. The whole record" in text


def test_a_run_in_progress_shows_what_it_prints_now(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "live", IDS, states=("running",))
    run = first_run(group, "running")
    work = GroupPaths(group).work("t")
    (work / "home" / "code").mkdir(parents=True)
    (work / "home" / "code" / "now.py").write_text("x = 1")
    (work / "run.log").write_text("old\n10%\r50%\r99%\nlast \x1b[1mline\n")
    site = site_of(tmp_path / "runs", live=True, files=True)
    page = page_of(site, run_path(run))
    assert page.data["log"]["text"] == "old\n99%\nlast line\n"
    html = made(page, site)
    assert "x = 1" in html
    assert "files/" not in html, "what lies in the working folder cannot be asked for"
    assert "last line" in made(page_of(site, f"group/{group.name}.html"), site)


def test_a_run_whose_process_was_killed_is_to_be_started_again(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "killed", IDS[:2], seeds=1, states=("ended", "running"))
    run = first_run(group, "running")
    shutil.rmtree(run.paths.leases)
    site = site_of(tmp_path / "runs", live=True)
    on_group = page_of(site, f"group/{group.name}.html")
    assert {row["state"] for row in on_group.data["rows"]} == {"ended", "planned"}
    assert "1 of 2 ended, 1 to come" in re.sub(" ,", ",", words(made(on_group, site)))
    text = words(made_run(run, live=True))
    assert "to be started again" in text
    assert "not started yet" not in text
    site = SiteReader([tmp_path / "runs"], Registry()).site()
    standings = words(made(page_of(site, "index.html"), site))
    assert "1 to come" in standings
    assert "0 running" not in standings


def test_a_failed_attempt_is_shown_if_there_is_nothing_else(ended: Run) -> None:
    ended.write(state="planned", ended=None, report=None)
    failed = ended.paths.attempt(1)
    (failed / "code").mkdir(parents=True)
    (failed / "run.log").write_text("it broke here")
    data = data_of(ended, files=True)
    assert data["log"]["text"] == "it broke here"
    assert data["attempt_shown"] == 1
    assert data["log_url"].endswith("/attempts/1/run.log")


def test_markup_and_control_codes_are_only_text(ended: Run) -> None:
    fill_run(ended.paths.root)
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.exe\u2066"
    ended.paths.log.write_text(evil)
    (ended.paths.code / "evil.py").write_text(evil)
    (ended.paths.code / "<img src=x onerror=alert(3)>\u202e.py").write_text(evil)
    (ended.paths.logs / "esc\x1b[31m\nname").write_text("x")
    (ended.paths.logs / os.fsdecode(b"not-\xff-text")).write_text("x")
    ended.paths.submission.write_text(f'id,"{evil}"\n1,"=HYPERLINK(""x"")"\n')
    trajectory(ended.paths.logs).write_text(json.dumps({"kind": evil, "time": 1, "text": evil}) + "\nnot json\n")
    ended.write(detail=evil, report=replace(report_of(ended), reason=evil, suspicious=evil))
    html = made_run(ended, files=True)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    assert "&lt;script&gt;alert(1)" in html
    assert "not-\\udcff-text" in html
    assert set(re.findall(r"<script[^>]*>", html)) == {'<script src="../../assets/script.js" defer>'}
    assert " style=" not in html


def test_links_are_shown_and_never_followed(ended: Run, tmp_path: Path) -> None:
    fill_run(ended.paths.root)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.py").write_text("SECRET = 'hunter2'")
    (ended.paths.code / "out").symlink_to(secret)
    (ended.paths.code / "key.py").symlink_to(secret / "key.py")
    ended.paths.submission.unlink()
    ended.paths.submission.symlink_to(secret / "key.py")
    ended.paths.log.unlink()
    ended.paths.log.symlink_to(secret / "key.py")
    trajectory(ended.paths.logs).unlink()
    trajectory(ended.paths.logs).symlink_to(secret / "key.py")
    (ended.paths.root / FINDINGS).symlink_to(secret)
    ended.paths.over_time.symlink_to(secret / "key.py")
    html = made_run(ended, files=True)
    assert "hunter2" not in html
    files = listing(ended.paths.root, "code").files
    assert {file.name: file.kind for file in files if file.kind} == dict.fromkeys(["key.py", "out"], "a symbolic link")
    assert "out/key.py" not in html
    for parts in (["code", "out", "key.py"], ["code", "key.py"], ["code", "..", "run.json"]):
        with pytest.raises(FileMissingError):
            open_below(ended.paths.root, parts)


def test_a_folder_of_the_agent_that_is_a_link_hides_nothing_else(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "live", IDS, states=("running",))
    work = GroupPaths(group).work("t")
    (work / "home").mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "submission.csv").write_text("hunter2\n")
    for name in ("code", "submission", "logs"):
        (work / "home" / name).symlink_to(secret)
    html = made_run(first_run(group, "running"), live=True)
    assert "hunter2" not in html
    assert "submission.csv" not in html


def test_a_record_cannot_lead_out_of_its_group(tmp_path: Path) -> None:
    run = first_run(make_group(tmp_path / "runs", "live", IDS[:1], states=("running",)), "running")
    (tmp_path / "run.log").write_text("hunter2")
    raw = json.loads(run.paths.record.read_text())
    raw["attempts"][0]["token"] = str(tmp_path)
    run.paths.record.write_text(json.dumps(raw))
    site = site_of(tmp_path / "runs", live=True)
    (group,) = site.group_named.values()
    assert any(run.fault for run in group.runs())
    assert "hunter2" not in made(page_of(site, f"group/{group.paths.root.name}.html"), site)


def test_pipes_sockets_and_binaries_do_not_stop_a_page(ended: Run) -> None:
    fill_run(ended.paths.root)
    os.mkfifo(ended.paths.code / "pipe.py")
    ended.paths.log.unlink()
    os.mkfifo(ended.paths.log)
    (ended.paths.code / "model.bin").write_bytes(bytes(range(256)) * 100)
    ended.paths.submission.write_bytes(b"\x00\xff" * 1000)
    html = made_run(ended)
    assert "a named pipe" in html
    assert "is not text" in html


def test_what_is_shown_is_bounded(ended: Run) -> None:
    fill_run(ended.paths.root)
    with ended.paths.log.open("wb") as file:
        file.truncate(1 << 40)
    (ended.paths.code / "large.py").write_text("x = 1\n" * 2_000_000)
    many = ended.paths.logs / "many"
    many.mkdir()
    for number in range(MOST_FILES + 50):
        (many / f"{number}{'n' * 200}").touch()
    deep = ended.paths.code
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    ended.paths.submission.write_text(",".join(["wide" * 1000] * 5000) + "\n")
    with trajectory(ended.paths.logs).open("w") as file:
        for number in range(5000):
            file.write(json.dumps({"kind": "output", "time": number, "text": "y" * 9000}) + "\n")
    data = data_of(ended)
    logs = next(one for one in data["files"] if one["folder"] == "logs")
    assert (logs["count"], len(logs["files"])) == (MOST_FILES + 51, MOST_FILES)
    assert not listing(ended.paths.root, "code").is_whole
    assert (data["log"]["size"], data["log"]["cut"], data["log"]["fault"]) == (1 << 40, True, None)
    large = next(one for one in data["code"] if one["name"] == "large.py")
    assert (large["text"][:6], large["size"], large["cut"]) == ("x = 1\n", 12_000_000, True)
    assert "of 5000 events" in made_run(ended)
    assert len(made_run(ended)) < 1_500_000


@pytest.mark.parametrize(
    "text", ['"', '"a\nb', "a;b\n1;2", "", "\ufeff\u200b", "a,b\n" + "1," * 9999, "a\rb\rc", "\n\n\n"]
)
def test_any_submission_has_a_head(ended: Run, text: str) -> None:
    fill_run(ended.paths.root)
    ended.paths.submission.write_text(text)
    assert made_run(ended)


def test_an_unreadable_record_is_reported_as_such(ended: Run) -> None:
    ended.paths.record.write_text("{")
    assert "cannot be read" in made_run(ended)


@pytest.mark.parametrize("name", ["..", ".", "no-such", "x\0y", "leases"])
def test_only_runs_have_pages(ended: Run, name: str) -> None:
    site = site_of(ended.paths.root.parent.parent)
    assert page_at(site, f"run/{ended.paths.root.parent.name}/{name}.html") is None
    assert page_at(site, f"run/{name}/{ended.paths.root.name}.html") is None


def test_a_run_folder_that_is_a_link_has_no_page(ended: Run, tmp_path: Path) -> None:
    elsewhere = ended.paths.root.rename(tmp_path / "elsewhere")
    ended.paths.root.symlink_to(elsewhere)
    assert page_at(site_of(ended.paths.root.parent.parent), run_path(ended)) is None


USED = {"calls": 12, "input_tokens": 3456, "output_tokens": 78, "cost": 1.25, "models": {"<m>": {"calls": 12}}}


def test_calls_and_cost_as_the_gateway_counted_them(ended: Run) -> None:
    ended.write(model=USED)
    assert data_of(ended)["model"]["tokens"]["input"] == 3456
    text = words(made_run(ended))
    assert "$1.25 12 calls" in text
    assert "input tokens 3,456" in text
    assert "&lt;m&gt; calls 12" in text
    site = site_of(ended.paths.root.parent.parent)
    assert page_of(site, f"group/{ended.paths.root.parent.name}.html").data["cost"] == 1.25
    assert page_of(site, "groups.html").data["groups"][0]["cost"] == 1.25


@pytest.mark.parametrize(
    ("calls", "shown"),
    [
        ([call_of("unpriced", TokenUsage(input=10, output=2))], "unknown"),
        ([call_of("m", TokenUsage())], "unknown"),
        ([call_of("m", TokenUsage()), call_of("m", TokenUsage(input=1000, output=0))], "at least $0.10"),
        ([call_of("m", TokenUsage(input=5, output=0))], "$0.0005"),
        ([], "$0.00"),
    ],
    ids=["no price", "no usage", "usage of some calls", "little", "no call"],
)
def test_an_unknown_cost_is_never_shown_as_zero(
    ended: Run, tmp_path: Path, calls: list[FinishedCall], shown: str
) -> None:
    group = ended.paths.root.parent
    for folder in group.glob("*/run.json"):
        Run.read(folder.parent).write(model=counted(tmp_path, *calls))
    text = words(made_run(ended))
    assert f"Cost {shown} {len(calls)} call{'' if len(calls) == 1 else 's'}," in text
    site = site_of(group.parent)
    of_group = page_of(site, f"group/{group.name}.html")
    assert {row["cost_words"] for row in of_group.data["rows"]} == {shown}
    assert of_group.data["cost_words"].split("$")[0] == shown.split("$")[0]
    if shown == "unknown":
        for html in (text, words(to_html(of_group, site)), words(to_html(page_of(site, "groups.html"), site))):
            assert "unknown" in html
            assert "$0.00" not in html


def test_a_run_without_a_model_is_named_on_its_pages(ended: Run) -> None:
    model = ModelUsage(calls=1, failed=1, unavailable=ModelOutage(cause="429 <quota>", says="x"), cost=0.0)
    run = ended.write(ended="model_unavailable", report=None, detail="no call (429 <quota>)", model=model)
    text = words(made_run(run))
    assert "model unavailable" in text
    assert "No call (429 &lt;quota&gt;)." in text
    site = site_of(run.paths.root.parent.parent)
    shown = words(to_html(page_of(site, f"group/{run.paths.root.parent.name}.html"), site))
    assert "model unavailable 429 &lt;quota&gt;" in shown
    assert "--retry infra" in shown
    assert data_of(run)["glance"]["result"] == "missing"


def test_calls_missing_from_a_trace_are_counted_and_files_left_out_are_listed() -> None:
    assert [row.name for row in fact_rows({"left_out": 2})] == ["left out"]
    assert [row.name for row in fact_rows({"left_out": [{"name": "big.bin"}]})] == ["left out, the first"]


def test_calls_and_cost_so_far(tmp_path: Path) -> None:
    group = make_group(tmp_path / "runs", "live", IDS[:1], states=("running",), network="model")
    work = GroupPaths(group).work("t")
    work.mkdir(parents=True)
    used = counted(tmp_path, *[call_of("m", TokenUsage(input=20_000, output=1_000))] * 3)
    usage_file(work).write_bytes(msgspec.json.encode(used))
    run = first_run(group, "running")
    assert "$9.00 3 calls, 63.0 k tokens" in words(made_run(run, live=True))
    site = site_of(tmp_path / "runs", live=True)
    of_group = page_of(site, f"group/{group.name}.html")
    assert {(row["calls"], row["tokens"], row["cost"]) for row in of_group.data["rows"]} == {(3, 63_000, 9.0)}
    text = words(made(of_group, site))
    assert "of 24 h 0 min · 3 calls, 63.0 k tokens, $9.00" in text, "a run in progress"
    assert "Calls Tokens Cost" in text
    assert "3 63.0 k $9.00" in text, "its row"
    assert "9 189.0 k $27.00" in words(made(page_of(site, "groups.html"), site))


def test_scores_that_are_not_finite_do_not_stop_a_page(ended: Run) -> None:
    report = asdict(report_of(ended)) | {"score": "NaN", "gold_threshold": None}
    raw = json.loads(ended.paths.record.read_text()) | {"report": report, "seconds": None}
    RunPaths(ended.paths.root).record.write_text(json.dumps(raw).replace('"NaN"', "NaN"))
    assert data_of(ended)["glance"]["score"] is None
    assert made_run(ended)
