"""Run groups that the reference wrote: every command reads them as they are and changes nothing unasked."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from support.folders import contents
from support.grading_reports import report, write_group, write_reports
from support.records import report_of
from support.reference_form import GROUP, POINTER, SPEC, write_reference_group

from mlebench.cli import main
from mlebench.records.run import RunConditions
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition, Registry
from mlebench.web.pages import page_at
from mlebench.web.render import to_html
from mlebench.web.site_reader import SiteReader

TITANIC, BIRDS = "spaceship-titanic", "mlsp-2013-birds"


class Call(Protocol):
    """`mlebench`: what it prints to stdout and stderr."""

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]: ...


@pytest.fixture
def call(titanic: Competition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(titanic.paths.data_dir))

    def run(*arguments: object, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, arguments)])
        streams = capsys.readouterr()
        assert (end.value.code or 0) == code, streams.out + streams.err
        return streams.out, streams.err

    return run


@pytest.fixture
def theirs(titanic: Competition, tmp_path: Path) -> Path:
    """Three runs: gold, nothing submitted, nonsense; the second failed in the reference itself."""
    made = [titanic.gold_submission.read_bytes(), None, b"wrong\n1\n"]
    root = write_reference_group(tmp_path / "runs", [(TITANIC, one) for one in made], failed=(1,))
    first, second, _ = sorted(root.glob(f"{TITANIC}_*"))
    (first / "code" / "train.py").write_text("import pandas\n")
    (second / "run.log").write_text("Traceback (most recent call last):\nValueError: the agent broke\n")
    return root


def write_reference_report(root: Path, name: str, medals: Mapping[str, str | None]) -> Path:
    """A grading report on a group's runs, by folder name; those without a file are named `None`, as it does."""
    rows = []
    for folder, medal in medals.items():
        path = root / folder / "submission" / "submission.csv"
        values: dict[str, Any] = {"submission_path": f"runs/{root.name}/{folder}/submission/submission.csv"}
        if not path.is_file():
            values = dict.fromkeys(("submission_exists", "valid_submission"), False)
            values |= {"submission_path": "None", "score": None}
        rows.append(report(folder.rpartition("_")[0], medal, **values))
    return write_reports(root / name, rows)


def refusal(err: str) -> str:
    """The one line that a refused command prints."""
    (line,) = err.splitlines()
    assert line.startswith("Error: ")
    return line


def test_what_they_do_not_state_is_unknown(theirs: Path) -> None:
    group = Group.read(theirs)
    record = group.record
    assert (record.origin, record.agent.name, record.created_at) == (
        "reference",
        "aide",
        "2024-09-06T18:25:55+00:00",
    )
    assert (record.sandbox, record.network, record.limits) == ("unknown", "unknown", None)
    unknown = ("data_dir", "twin", "gpus_per_run", "obfuscate", "retain", "workers", "report")
    assert [getattr(record, name) for name in unknown] == [None] * len(unknown)
    runs = list(group.runs())
    assert [run.record.submission for run in runs] == ["present", "none", "present"]
    for run in runs:
        assert run.record.is_final
        assert (run.record.seed, run.record.ended, run.record.seconds, run.record.rerolls) == (None, None, None, None)
        assert run.record.conditions == RunConditions()
        assert Run.read(run.paths.root) == run


def test_runs_lists_and_shows_them_as_theirs(theirs: Path, call: Call) -> None:
    before = contents(theirs)
    write_group(theirs.parent, "ours", [{"competition": BIRDS, "seed": 0}])
    rows = {row["group"]: row for row in json.loads(call("runs", "--json", "--runs-dir", theirs.parent)[0])}
    row, ours = rows[theirs.name], rows["ours"]
    assert (row["origin"], row["agent"], row["runs"], row["submitted"], row["data"]) == (
        "reference",
        "aide",
        3,
        2,
        "unknown",
    )
    assert ours["origin"] is None
    assert "reference" in call("runs", "--runs-dir", theirs.parent)[0]
    listed, said = call("runs", "list", GROUP[:12], "--runs-dir", theirs.parent)
    assert [line.split()[:3] for line in listed.splitlines()[1:]] == [[TITANIC, "-", "unknown"]] * 3
    assert "written by the reference" in said
    run = sorted(theirs.glob(f"{TITANIC}_*"))[1]
    for named in (run, run.name, run.name.rpartition("_")[2], f"{theirs.name}/{run.name}"):
        shown, _ = call("runs", "show", named, "--runs-dir", theirs.parent)
        assert "written by the reference" in shown
        assert "seed unknown, unknown data" in shown
        assert "the reference says that this run failed" in shown
        assert "ValueError: the agent broke" in shown
    call("runs", "show", run, "--story")
    assert contents(theirs) == before


def test_a_groups_name_is_not_taken_for_the_beginning_of_a_runs(theirs: Path, call: Call) -> None:
    assert (
        f"{GROUP} is a run group: `mlebench runs list {GROUP}`"
        in call("runs", "show", GROUP, "--runs-dir", theirs.parent, code=1)[1]
    )


def test_grade_adds_a_report_where_the_reference_looks_for_it(theirs: Path, call: Call) -> None:
    before = contents(theirs)
    counts, table = call("grade", theirs)
    assert json.loads(counts)["total_gold_medals"] == 1
    assert [line.split()[1] for line in table.splitlines() if line.startswith(TITANIC)] == [
        "graded",
        "missing",
        "invalid",
    ]
    (path,) = theirs.glob("*_grading_report.json")
    after = contents(theirs)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before == {path.name}
    group = Group.read(theirs)
    assert (group.record.report, group.record.twin) == (path.name, True)
    assert [report_of(run).status for run in group.runs()] == ["graded", "missing", "invalid"]
    rows = json.loads(path.read_text())["competition_reports"]
    assert [(row["agent"], row["seed"]) for row in rows] == [("aide", None)] * 3
    assert f"{TITANIC}_{rows[0]['run_id']}" in rows[0]["submission_path"]


def test_a_folder_that_cannot_be_written_to_is_refused_in_a_line(
    theirs: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)  # root may write anywhere
    assert str(theirs) in refusal(call("grade", theirs, code=1)[1])
    monkeypatch.setattr(Path, "mkdir", refuse)
    for tool in ("failures", "plagiarism", "rules"):
        out, err = call("inspect", tool, theirs)
        assert out
        assert "not stored" in err.splitlines()[-1]
        assert "Traceback" not in err
    assert not list(theirs.rglob("findings"))


def test_report_uses_the_newest_grading_report_under_any_name(theirs: Path, call: Call) -> None:
    for named in (theirs, theirs.name, theirs.name[:-1]):
        line = refusal(call("report", named, "--runs-dir", theirs.parent, code=1)[1])
        assert f"run `mlebench grade {theirs}` first" in line
    names = sorted(path.name for path in theirs.glob(f"{TITANIC}_*"))
    old = write_reference_report(theirs, "grading_report_group_1.json", dict.fromkeys(names))
    os.utime(old, (0, 0))
    medals = dict(zip(names, ("gold", None, None), strict=True))
    write_reference_report(theirs, "2024-09-19T20-07-15-GMT_grading_report.json", medals)
    write_reference_report(theirs, "2024-09-19T20-07-14-UTC_grading_report.json", dict.fromkeys(names))
    (entry,) = standings(call, theirs)
    assert (entry["agent"], entry["origin"], entry["conditions"]) == ("aide", "written by the reference", {})
    assert [run["gold"] for run in entry["runs"]] == [True, False, False]
    (file,) = standings(call, f"aide={theirs / '2024-09-19T20-07-15-GMT_grading_report.json'}")
    assert file["scopes"] == entry["scopes"]
    assert "aide: written by the reference; what it does not state is unknown." in call("report", theirs)[1]
    given_twice = call("report", theirs, theirs / "2024-09-19T20-07-15-GMT_grading_report.json", code=1)[1]
    assert "given twice" in refusal(given_twice)


def standings(call: Call, *arguments: object) -> list[dict[str, Any]]:
    return json.loads(call("report", *arguments, "--format", "json")[0])["entries"]


def test_groups_with_unknown_conditions_are_pooled_only_under_a_name_of_the_users(tmp_path: Path, call: Call) -> None:
    roots = []
    for number, name in enumerate((GROUP, GROUP.replace("-06T", "-07T"))):
        ids = [f"bfa0c73{number}"]  # as short as an older version made them
        roots.append(write_reference_group(tmp_path / "runs", [(BIRDS, b"Id\n1\n")], name, ids=ids))
        write_reference_report(roots[-1], "grading_report.json", {f"{BIRDS}_{ids[0]}": "bronze"})
    assert [entry["agent"] for entry in standings(call, *roots)] == [f"aide ({root.name})" for root in roots]
    assert [entry["agent"] for entry in standings(call, *(f"both={root}" for root in roots))] == ["both"]
    table = tmp_path / "runs" / "run_group_experiments.csv"
    table.write_text("experiment_id,run_group\n" + "".join(f"scaffolding,{root.name}\n" for root in roots))
    (entry,) = standings(call, "--experiment", "scaffolding", "--runs-dir", tmp_path / "runs")
    assert len(entry["runs"]) == 2


def test_published_folders_hold_nothing_but_a_report(tmp_path: Path, call: Call) -> None:
    path = write_reports(
        tmp_path / "runs" / "disarray_group_1" / "grading_report_group_1.json", [report(BIRDS, "gold")]
    )
    (entry,) = standings(call, path.parent)
    assert entry["agent"] == "disarray_group_1"
    assert f"`mlebench report {path.parent}` shows them" in call("runs", "--runs-dir", path.parent)[1]
    said = call("runs", "--runs-dir", tmp_path / "runs")[1]
    assert f"It has grading reports in a subfolder: `mlebench report {path.parent}` shows" in said
    (entry,) = standings(call, "Disarray=disarray_group_1", "--runs-dir", tmp_path / "runs")
    assert entry["agent"] == "Disarray"


def test_a_report_about_other_files_counts_but_is_no_runs_own(theirs: Path, call: Call) -> None:
    write_reports(
        theirs / "grading_report.json", [report(TITANIC, "gold", submission_path="/elsewhere/submission.csv")]
    )
    assert [run.record.report for run in Group.read(theirs).runs()] == [None] * 3
    assert "other files" in call("runs", "list", theirs)[1]
    (entry,) = standings(call, theirs)
    assert entry["agent"] == theirs.name
    assert "other files" in refusal(call("bundle", "make", theirs, "-o", theirs.parent / "b.tar.gz", code=1)[1])


def test_inspection_reads_logs_and_code_and_keeps_findings(theirs: Path, call: Call) -> None:
    call("inspect", "rules", theirs)
    call("inspect", "plagiarism", theirs)
    told = json.loads(call("inspect", "failures", theirs, "--json")[0])
    assert [run["category"] for run in told["runs"]] == ["not_graded", "crashed", "not_graded"]
    assert [run["seed"] for run in told["runs"]] == [None] * 3
    assert {path.name for path in theirs.rglob("findings/*.json")} == {"failures.json", "plagiarism.json", "rules.json"}
    call("grade", theirs)
    for run in Group.read(theirs).runs():  # what was said before is no longer true
        assert "not_graded" not in call("runs", "show", run.paths.root)[0]
        page = page_at(SiteReader([theirs], Registry()).site(), f"run/{theirs.name}/{run.paths.root.name}.html")
        assert page is not None
        assert "ot been graded" not in json.dumps(page.data["findings"])
    told = json.loads(call("inspect", "failures", theirs, "--json")[0])
    assert [run["category"] for run in told["runs"]] == ["suspicious", "crashed", "invalid_format"]


def test_links_that_an_agent_left_are_not_followed(theirs: Path, titanic: Competition, call: Call) -> None:
    first, _, third = sorted(theirs.glob(f"{TITANIC}_*"))
    (first / "submission" / "submission.csv").unlink()
    (first / "submission" / "submission.csv").symlink_to(titanic.answers)
    (third / "code").rmdir()
    (third / "code").symlink_to(titanic.private_dir)
    (third / "run.log").unlink()
    (third / "run.log").symlink_to(titanic.answers)
    assert [run.record.submission for run in Group.read(theirs).runs()] == ["none", "none", "present"]
    table = call("grade", theirs)[1]
    assert [line.split()[1] for line in table.splitlines() if line.startswith(TITANIC)] == [
        "missing",
        "missing",
        "invalid",
    ]
    row = titanic.answers.read_text().splitlines()[1]
    assert row not in call("runs", "show", third)[0]
    assert row not in call("inspect", "failures", theirs)[0]
    assert not any(row in text for text in pages(theirs))


def pages(theirs: Path) -> Iterator[str]:
    """The pages of a group and its runs."""
    site = SiteReader([theirs.parent], Registry()).site()
    assert site.faults == ()
    runs = [f"run/{theirs.name}/{run.name}.html" for run in theirs.glob(f"{TITANIC}_*")]
    for path in ("groups.html", f"group/{theirs.name}.html", *runs):
        page = page_at(site, path)
        assert page is not None, path
        yield to_html(page, site)
    assert page_at(site, f"run/{theirs.name}/metadata.json.html") is None


def test_pages_say_who_wrote_a_group(theirs: Path, call: Call) -> None:
    for text in pages(theirs):
        assert "written by the reference" in text
        assert "None" not in text
    call("grade", theirs)
    for text in pages(theirs):
        assert "written by the reference" in text
        assert "None" not in text
    source = SiteReader([theirs], Registry())
    first, second = source.site(), source.site()
    assert [section.title for section in first.sections] == ["Twins (synthetic data)"]
    assert first.sections[0] is second.sections[0], "standings are made again only when something has changed"
    served = f"run/{theirs.name}/{min(path.name for path in theirs.glob(f'{TITANIC}_*'))}.html"
    page = page_at(first, served)
    assert page is not None
    assert [one["folder"] for one in page.data["files"]] == ["submission", "code"]


def test_a_bundle_holds_the_runs_that_metadata_lists(theirs: Path, call: Call) -> None:
    target = theirs.parent.parent / "theirs.tar.gz"
    assert "mlebench grade" in refusal(call("bundle", "make", theirs, "-o", target, code=1)[1])
    call("grade", theirs)
    call("bundle", "make", theirs, "-o", target)
    verdict = json.loads(call("bundle", "verify", target, "--json")[0])
    assert (verdict["trust"], [run["verdict"] for run in verdict["runs"]]) == ("regraded", ["agrees"] * 3)
    (entry,) = standings(call, target)
    assert (entry["agent"], entry["origin"]) == ("aide [regraded]", "written by the reference")
    assert "written by the reference" in refusal(call("run", "--like", target, "--twin", code=1)[1])
    (again := theirs.parent / "again.tar.gz").touch()
    call("bundle", "make", theirs, "-o", again)
    assert again.read_bytes() == target.read_bytes()


def test_a_bundle_of_their_own_scores_stays_a_claim(theirs: Path, call: Call) -> None:
    names = sorted(path.name for path in theirs.glob(f"{TITANIC}_*"))
    write_reference_report(theirs, "grading_report_group_2.json", dict(zip(names, ("gold", None, None), strict=True)))
    target = theirs.parent / "theirs.tar.gz"
    call("bundle", "make", theirs, "-o", target)
    verdict = json.loads(call("bundle", "verify", target, "--json")[0])
    assert verdict["trust"] == "claimed"
    assert [run["verdict"] for run in verdict["runs"]] == ["not regraded", "agrees", "not regraded"]


def test_their_runs_cannot_be_carried_out(theirs: Path, call: Call) -> None:
    before = contents(theirs)
    for arguments in (("run", "--resume", theirs), ("runs", "cancel", theirs), ("run", "--like", theirs)):
        line = refusal(call(*arguments, code=1)[1])
        assert "written by the reference" in line
    assert contents(theirs) == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "lists no `runs`"),
        ('{"runs": ["x_1"]}', "lists no `runs`"),
        (POINTER, "is a Git LFS pointer: run `git lfs pull`"),
        ('{"runs": {"../../etc_1": {}}}', "names a run"),
        ('{"runs": {"\\u001b[2J_1": {}}}', "names a run '\\x1b[2J_1'"),
        ('{"runs": {"no-id": {}}}', "not <competition>_<id>"),
    ],
    ids=["empty", "nested", "list", "list of runs", "pointer", "path", "escape code", "no id"],
)
def test_damaged_and_hostile_metadata_is_refused_in_a_line(tmp_path: Path, call: Call, content: str, says: str) -> None:
    root = tmp_path / "runs" / GROUP
    root.mkdir(parents=True)
    (root / "metadata.json").write_text(content)
    assert says in refusal(call("runs", "list", root, code=1)[1])
    assert says in refusal(call("grade", root, code=1)[1])
    assert json.loads(call("runs", "--json", "--runs-dir", root.parent)[0]) == []


def test_linked_folders(theirs: Path, call: Call) -> None:
    elsewhere = theirs.rename(theirs.parent.parent / "elsewhere")
    theirs.symlink_to(elsewhere)
    assert len(json.loads(call("runs", "list", theirs, "--json")[0])) == 3
    run = sorted(elsewhere.glob(f"{TITANIC}_*"))[0]
    run.rename(elsewhere.parent / "run")
    run.symlink_to(elsewhere.parent / "run")
    assert "is a symbolic link" in refusal(call("runs", "list", theirs, code=1)[1])


def test_no_runs_and_missing_folders(tmp_path: Path, call: Call) -> None:
    root = write_reference_group(tmp_path / "runs", [], "my own name", created_at=7, run_group=None)
    assert Group.read(root).record.agent.name == "unknown"
    assert Group.read(root).record.created_at is None
    counts, said = call("grade", root)
    assert json.loads(counts)["total_runs"] == 0
    assert "has no runs" in said
    root = write_reference_group(tmp_path / "runs", [(TITANIC, None)], ids=["1"])
    shutil.rmtree(root / f"{TITANIC}_1")
    assert json.loads(call("grade", root)[0])["total_runs_with_submissions"] == 0
    call("inspect", "failures", root)
    call("bundle", "make", root, "-o", tmp_path / "b.tar.gz")
    call("runs", "show", f"{TITANIC}_1", "--runs-dir", root.parent)
    site = SiteReader([root], Registry()).site()
    assert page_at(site, f"run/{root.name}/{TITANIC}_1.html") is not None


def test_a_group_of_ours_whose_planning_was_interrupted_is_not_theirs(tmp_path: Path, call: Call) -> None:
    ours = write_group(tmp_path, "ours", [{"competition": BIRDS, "seed": 0}])
    (ours / "metadata.json").write_text(json.dumps({"runs": {f"{BIRDS}_ours-run0": {"success": False}}}))
    (ours / "group.json").unlink()
    assert "not a run group" in refusal(call("runs", "list", ours, code=1)[1])


def test_git_lfs_pointers_are_called_that(tmp_path: Path, titanic: Competition, call: Call) -> None:
    pointer = tmp_path / "grading_report.json"
    pointer.write_text(POINTER)
    table = tmp_path / "run_group_experiments.csv"
    table.write_text(POINTER)
    submission = tmp_path / "submission.csv"
    submission.write_text(POINTER)
    for arguments in (
        ("report", pointer),
        ("report", tmp_path),
        ("report", "--experiment", "x", "--table", table),
        ("grade", "--submission", pointer, "--output-dir", tmp_path / "out"),
        ("inspect", "failures", pointer),
    ):
        assert "is a Git LFS pointer: run `git lfs pull`" in refusal(call(*arguments, code=1)[1])
    graded = json.loads(call("grade-sample", submission, TITANIC)[0])
    assert graded["status"] == "invalid"
    assert "Submission is a Git LFS pointer" in graded["reason"]
    long = SPEC.encode() + b"\n" * 5000
    submission.write_bytes(long)
    assert "LFS" not in json.loads(call("grade-sample", submission, TITANIC)[0])["reason"]


def test_a_log_that_is_a_git_lfs_pointer_is_called_that(theirs: Path, call: Call) -> None:
    run = sorted(theirs.glob(f"{TITANIC}_*"))[1]
    (run / "run.log").write_text(POINTER)
    assert "Its log is a Git LFS pointer" in call("runs", "show", run)[0]
    told = json.loads(call("inspect", "rules", theirs, "--json")[0])
    assert told["runs"][1]["facts"]["no_text"] == ["run.log"]


def test_pages_show_them_beside_a_group_that_states_its_conditions(theirs: Path, tmp_path: Path, call: Call) -> None:
    call("grade", theirs)
    run = {"competition": TITANIC, "seed": 0}
    ours = write_group(tmp_path, "ours", [run], twin=True)
    shorter = write_group(tmp_path, "shorter", [run], twin=True, network="full", limits={"seconds": 60})
    call("report", ours, shorter, theirs, "--format", "html", "-o", tmp_path / "pages")
    text = (tmp_path / "pages" / "index.html").read_text()
    (agents,) = re.findall(r'<tbody id="standings-rows".*?</tbody>', text, re.DOTALL)
    assert agents.count("conditions not stated") == agents.count("not stated") > 0


def test_a_run_keeps_its_score_when_it_cannot_be_graded_again(theirs: Path, tmp_path: Path, call: Call) -> None:
    call("grade", theirs)
    before = [run.record.report for run in Group.read(theirs).runs()]
    _, said = call("grade", theirs, "--data-dir", tmp_path / "no data", code=1)
    assert "not prepared" in said
    assert len(list(theirs.glob("*_grading_report.json"))) == 2
    assert [run.record.report for run in Group.read(theirs).runs()] == before


def test_what_was_not_graded_has_no_medal_to_tell(theirs: Path, call: Call) -> None:
    rows = [line.split() for line in call("runs", "list", theirs)[0].splitlines()[1:]]
    assert {row[-1] for row in rows} == {"-"}


def test_groups_that_cannot_be_read_are_named(theirs: Path, tmp_path: Path, call: Call) -> None:
    damaged = write_reference_group(theirs.parent, [], "2030-01-01T00-00-00-GMT_run-group_damaged")
    (damaged / "metadata.json").write_text(POINTER)
    listed, said = call("runs", "--runs-dir", theirs.parent)
    assert theirs.name in listed
    assert f"{damaged / 'metadata.json'} is a Git LFS pointer" in said
    call("grade", theirs)
    assert f"{damaged / 'metadata.json'} is a Git LFS pointer" in call("report", "--runs-dir", theirs.parent)[1]


def test_a_group_without_runs_cannot_be_bundled(tmp_path: Path, call: Call) -> None:
    root = write_reference_group(tmp_path / "runs", [])
    assert "has no runs" in refusal(call("bundle", "make", root, "-o", tmp_path / "b.tar.gz", code=1)[1])
