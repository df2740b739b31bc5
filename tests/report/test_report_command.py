"""`mlebench report` as a person or a program sees it."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from support.grading_reports import report, write_group, write_reports

from mlebench.cli import main
from mlebench.cli.console import folded, table_lines
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import grades_log
from mlebench.records.findings import NOTE, VIOLATION, Finding, Findings
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition, Registry
from mlebench.report.published_standings import published_entries
from mlebench.run.over_time import grade_snapshots

LOW = Registry().get_split("low")


class Report(Protocol):
    """`mlebench report`: what it prints to stdout and stderr."""

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]: ...


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Report:
    def run(*arguments: object, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main(["report", *map(str, arguments)])
        streams = capsys.readouterr()
        assert (end.value.code or 0) == code, streams.err
        return streams.out, streams.err

    return run


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """The seeds of a published entry: 13, 15 and 13 medals of 22."""
    return [
        write_reports(
            tmp_path / f"seed{seed}_grading_report.json",
            [report(id, "bronze" if place < medals else None) for place, id in enumerate(LOW)],
        )
        for seed, medals in enumerate((13, 15, 13))
    ]


def test_a_published_figure_from_the_reference_s_files(call: Report, three: list[Path]) -> None:
    out, err = call("--reports", *three)
    header, row = out.splitlines()[:2]
    assert "62.12 ± 3.03" in row
    assert header.split()[:5] == ["agent", "split", "competitions", "seeds", "missing"]
    assert row.split()[:5] == ["reports", "low", "22", "3", "0"]
    assert "only seeds with a run of every competition count" in err


def test_json_csv_and_markdown_say_the_same(call: Report, three: list[Path]) -> None:
    arguments = ["--reports", f"one={three[0]}", "--reports", f"two={three[1]}", "--split", "low", "--power", 5]
    data = json.loads(call(*arguments, "--format", "json")[0])
    rows = list(csv.DictReader(io.StringIO(call(*arguments, "--format", "csv")[0])))
    text = call(*arguments, "--format", "md")[0]
    for entry in data["entries"]:
        scope = entry["scopes"][0]
        figures = scope["figures"]["any_medal"]
        (row,) = [
            one for one in rows if (one["agent"], one["kind"], one["figure"]) == (entry["agent"], "split", "any_medal")
        ]
        assert [float(row[name]) for name in ("mean", "low", "high")] == [figures[n] for n in ("mean", "low", "high")]
        assert (row["sem"], figures["sem"], row["hours"], scope["spent"]["hours"]) == ("", None, "", None)
        shown = f"| {figures['mean']:.2f} | [{figures['low']:.2f}, {figures['high']:.2f}] |"
        assert f"| {entry['agent']} | low | 22 | 1 | 0 {shown}" in text
        assert len(entry["runs"]) == 22
    assert data["comparisons"][0]["differences"]["any_medal"]["mean"] == pytest.approx(-200 / 22)
    assert data["seeds_needed"][0]["seeds"] > 10
    assert (data["profile"], data["data"], data["padded"]) == ("v1", "unknown", False)
    widths = {line.count("|") for line in text.partition("## By")[0].splitlines() if line.startswith("|")}
    assert len(widths) == 1


@pytest.mark.parametrize("form", ["table", "md", "csv", "json"])
def test_a_file_holds_what_stdout_would(call: Report, three: list[Path], tmp_path: Path, form: str) -> None:
    shown = call(*three, "--format", form)[0]
    assert call(*three, "--format", form, "-o", tmp_path / "out")[0] == ""
    assert (tmp_path / "out").read_text() == shown


def test_a_run_group_with_its_costs(call: Report, tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [
        {
            "competition": id,
            "seed": seed,
            "report": report(id, "gold"),
            "seconds": 1800.0,
            "gpu_hours": 0.25,
            "starts": 2,
            "rerolls": 1,
            "conditions": {"sealed": seed == 0},
        }
        for id in LOW
        for seed in range(2)
    ]
    runs[-1] |= {"ended": "infra_error", "report": None, "rerolls": 0}
    write_group(tmp_path / "runs", "g", runs)
    out, err = call("g", "--runs-dir", tmp_path / "runs", "--split", "low")
    row = re.split("  +", out.splitlines()[1])
    assert row[:6] == ["mine", "low", "22", "1 of 2", "1", "100.00"]
    assert row[-9:] == ["22.00", "11.00", "88", "43", "22", "1", "-", "-", "-"]
    assert "Some runs were not sealed" in err
    padded, err = call("g", "--runs-dir", tmp_path / "runs", "--split", "low", "--pad-missing")
    assert re.split("  +", padded.splitlines()[1])[3:6] == ["2", "1", "97.73 ± 2.27"]
    assert "missing runs count as failures" in err


def test_every_format_states_conditions_and_what_is_unlike(call: Report, tmp_path: Path) -> None:
    run = {"competition": LOW[0], "seed": 0, "report": report(LOW[0], "gold")}
    for name, hours in (("short", 1), ("long", 4)):
        limits = {"seconds": hours * 3600, "cpus": 2, "memory": 16 * 10**9}
        agent = {"name": name, "identity": name}
        write_group(tmp_path / "runs", name, [run], limits=limits, requested={"seconds": hours * 3600}, agent=agent)
    arguments = ["short", "long", "--runs-dir", tmp_path / "runs"]
    alike = "2 CPUs, 16 GB RAM, no GPU, no network, description named, sandbox bubblewrap, profile v1"
    out, err = call(*arguments)
    assert [re.split("  +", line)[:3] for line in out.splitlines()[:3]] == [
        ["agent", "split", "time limit"],
        ["short", "given", "1 h"],
        ["long", "given", "4 h"],
    ]
    assert f"Conditions of all entries: {alike}." in err
    assert "not like with like: they differ in time limit." in err
    markdown = call(*arguments, "--format", "md")[0]
    assert "| short | given | 1 h |" in markdown
    assert "| 1 h against 4 h |" in markdown
    assert alike in markdown
    rows = list(csv.DictReader(io.StringIO(call(*arguments, "--format", "csv")[0])))
    told = {(row["agent"], row["time_limit"], row["cpus"], row["unlike"]) for row in rows}
    assert told == {("short", "1 h", "2 CPUs", ""), ("long", "4 h", "2 CPUs", "1 h against 4 h")}
    data = json.loads(call(*arguments, "--format", "json")[0])
    assert data["conditions"] == {"alike": alike, "differing": ["time_limit"]}
    assert data["comparisons"][0]["unlike"] == {"time limit": ["1 h", "4 h"]}
    assert [(entry["hours_limit"], entry["conditions"]["cpus"]) for entry in data["entries"]] == [(1, 2), (4, 2)]
    call(*arguments, "--format", "html", "-o", tmp_path / "pages")
    page = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    assert all(text in page for text in ("how conditions differ", '<span title="time limit">4 h</span>', alike))
    compared = (tmp_path / "pages" / "compare" / "real" / "short" / "long.html").read_text(encoding="utf-8")
    assert "Not like with like: 1 h against 4 h." in compared
    out, err = call(*arguments, "--strict", code=1)
    assert (out, err) == ("", "Error: --strict: short and long were run under unlike conditions: 1 h against 4 h\n")
    call("short", "--runs-dir", tmp_path / "runs", "--strict")


def test_a_wide_table_is_folded_for_a_terminal() -> None:
    header = ["agent", "split", *(f"column {number}" for number in range(9))]
    rows = [[f"{name}{number}" for number in range(11)] for name in "ab"]
    parts = list(folded(header, rows, 2, 40))
    assert all(len(line) <= 40 for part in parts for line in table_lines(*part))
    assert [heads[:2] for heads, _ in parts] == [header[:2]] * len(parts)
    assert [head for heads, _ in parts for head in heads[2:]] == header[2:]
    assert [cell for _, cells in parts for cell in cells[1][2:]] == rows[1][2:]
    assert list(folded(header, rows, 2, None)) == [(header, rows)]


def test_published_entries_are_marked_as_theirs(call: Report, three: list[Path]) -> None:
    out, err = call(*three, "--published")
    published = published_entries()
    assert len(published) == 26
    assert {one.agent for one in published if one.leakage} == {"Disarray", "LoongFlow"}
    lines = out[out.index("marks") :].splitlines()[1:]
    assert [line.split("  ")[-1].strip() for line in lines[:3]] == ["leakage", "leakage, padded", "-"]
    assert "other people's figures" in err
    rows = list(csv.DictReader(io.StringIO(call(*three, "--published", "--format", "csv")[0])))
    theirs = [row for row in rows if row["data"] == "published"]
    assert len(theirs) == 4 * 26
    intern = next(row for row in theirs if row["agent"].startswith("InternAgent") and row["name"] == "low")
    assert (intern["mean"], intern["sem"], intern["low"]) == ("62.12", "3.03", "")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ([], 2, "name a run group, a bundle, a grading report or an experiment"),
        (["nowhere"], 1, "there is no run group 'nowhere'"),
        (["--reports", "A=nowhere.json"], 1, "there is no grading report nowhere.json"),
        (["--experiment", "x"], 1, "run_group_experiments.csv"),
        (["x", "--split", "lowest"], 2, "lowest"),
        (["x", "--power", "0"], 2, "power"),
    ],
)
def test_faults_are_one_line(call: Report, arguments: list[str], code: int, why: str) -> None:
    out, err = call(*arguments, code=code)
    assert out == ""
    assert why in err
    assert "Traceback" not in err


def test_a_missing_folder_is_one_line(call: Report, three: list[Path], tmp_path: Path) -> None:
    _, err = call(*three, "-o", tmp_path / "gone/out", code=1)
    assert err.startswith("Error: cannot write ")


def test_names_cannot_break_tables_or_terminals(call: Report, tmp_path: Path) -> None:
    name = "x|y\x1b[31m\nz"
    path = write_reports(tmp_path / "a.json", [report(LOW[0], agent=name)])
    for form in ("table", "md", "csv"):
        out, _ = call(path, "--format", form)
        assert "\x1b" not in out
        assert "[31m?z" in out
    assert "x\\|y" in call(path, "--format", "md")[0]


def test_scores_that_are_not_finite_leave_valid_json(call: Report, tmp_path: Path) -> None:
    """The reference writes them unchanged."""
    scores = [float("nan"), float("inf"), float("-inf"), None]
    path = write_reports(tmp_path / "a.json", [report(LOW[0], score=score) for score in scores])
    out, _ = call(path, "--format", "json")
    data = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [run["score"] for run in data["entries"][0]["runs"]] == [None] * 4


def test_an_empty_report_is_reported(call: Report, tmp_path: Path) -> None:
    assert "the given inputs hold no runs" in call(write_reports(tmp_path / "a.json", []), code=1)[1]


def test_score_over_time_from_kept_submissions(call: Report, titanic: Competition, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"data_dir": str(titanic.paths.data_dir), "twin": True}
    run = {"competition": titanic.id, "rerolls": 0}
    group = write_group(tmp_path, "g", [run | {"seed": 0}, run | {"seed": 1}], **asked)
    done = Run.read(group / f"{titanic.id}_g-run0")
    done.paths.snapshots.mkdir()
    contents = [titanic.sample_submission.read_bytes(), b"nonsense", titanic.gold_submission.read_bytes()]
    for seconds, content in zip((1.5, 7.0, 60.0), contents, strict=True):
        (done.paths.snapshots / f"{seconds:010.1f}.csv").write_bytes(content)
    before = done.paths.record.read_bytes()
    log = grades_log(titanic.paths.data_dir)
    graded_before = len(log.read_text().splitlines()) if log.exists() else 0
    (graded,) = grade_snapshots(Group.read(group))
    points = [(point.seconds, point.status, point.score, point.any_medal) for point in graded.points]
    assert points == [(1.5, "graded", 0.425, False), (7.0, "invalid", None, False), (60.0, "graded", 1.0, True)]
    lines = [json.loads(line) for line in log.read_text().splitlines()[graded_before:]]
    assert [(line["agent"], line["seed"], line["run_id"]) for line in lines] == [("mine", 0, "g-run0")] * 3
    assert done.paths.record.read_bytes() == before
    runs = json.loads(call(group, "--format", "json")[0])["entries"][0]["runs"]
    assert [one["over_time"] for one in runs] == [msgspec.to_builtins(graded.points), None]
    write_group(tmp_path, "going-on", [run | {"seed": 0, "state": "running"}], **asked)
    with pytest.raises(PrerequisiteError, match="have not ended"):
        grade_snapshots(Group.read(tmp_path / "going-on"))


SAYS_YES = Finding(VIOLATION, "judge:hand-made", "The judge m says yes.")
COUNTS = {"planted": 10, "found": 9, "planted_addressed": 4, "found_addressed": 3, "clean": 20, "false_alarms": 1}
MEASURED = "recall 9 of 10, false alarms 1 of 20; of cases that address the judge, it finds 3 of 4"


@pytest.fixture
def inspected(tmp_path: Path) -> Path:
    """Four runs: two inspected by `inspect rules`, with two judges, and three by `inspect failures`."""
    runs = [{"competition": LOW[0], "seed": seed, "report": report(LOW[0])} for seed in range(4)]
    where = write_group(tmp_path / "runs", "g", runs)
    found = [Run.read(folder) for folder in sorted(path.parent for path in where.glob("*/run.json"))]
    by_detector = Finding(VIOLATION, "calls-a-grader", "It does."), Finding(NOTE, "network", "It has."), SAYS_YES
    calibrated = {"model": "m", "rubric": "1", "answers": {"hand-made": "yes"}, "calibration": {"questions": {}}}
    calibrated["calibration"]["questions"]["hand-made"] = COUNTS
    Findings.of("rules", [*by_detector], judge=calibrated).write_for(found[0].paths)
    other = calibrated | {"model": "n", "answers": {"hand-made": "not enough evidence"}, "calibration": "uncalibrated"}
    Findings.of("rules", [], judge=other).write_for(found[1].paths)
    for run, category in zip(found, ("crashed", "timeout", "crashed"), strict=False):
        Findings.of("failures", [Finding(NOTE, category, "It has.")], category=category).write_for(run.paths)
    return where


ROWS = [
    ["mine", "failures", "crashed", "2", "3", "66.7", "1", "-"],
    ["mine", "failures", "timeout", "1", "3", "33.3", "1", "-"],
    ["mine", "rules", "violation", "1", "2", "50.0", "2", "-"],
    ["mine", "rules", "condition", "0", "2", "0.0", "2", "-"],
    ["mine", "rules", "note", "1", "2", "50.0", "2", "-"],
    ["mine", "rules", "judge m says yes: hand-made", "1", "1", "100.0", "3", MEASURED],
    ["mine", "rules", "judge n says yes: hand-made", "0", "1", "0.0", "3", "uncalibrated; not enough evidence in 1"],
]


def test_findings_are_counted_for_each_agent_and_a_judge_s_rates_say_how_good_it_is(
    call: Report, inspected: Path, tmp_path: Path
) -> None:
    table = call(inspected)[0].split("\n\n")[-1]
    assert [re.split("  +", line) for line in table.splitlines()[1:]] == ROWS
    markdown = call(inspected, "--format", "md")[0]
    assert all("| " + " | ".join(row) + " |" in markdown for row in ROWS)
    (entry,) = json.loads(call(inspected, "--format", "json")[0])["entries"]
    assert [[one["finding"], one["runs"], one["of"]] for one in entry["findings"]] == [
        [row[2], int(row[3]), int(row[4])] for row in ROWS
    ]
    assert entry["runs"][0]["findings"]["failures"]["category"] == "crashed"
    rows = [row for row in csv.DictReader(io.StringIO(call(inspected, "--format", "csv")[0])) if row["trust"]]
    assert [row["trust"] for row in rows] == [MEASURED, "uncalibrated"]
    assert [float(row["mean"]) for row in rows] == [100.0, 0.0]
    call(inspected, "--format", "html", "-o", tmp_path / "pages")
    page = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    assert MEASURED in page
    assert "uncalibrated; not enough evidence in 1" in page


def test_findings_about_an_earlier_attempt_or_in_an_unknown_form_are_left_out(call: Report, inspected: Path) -> None:
    first, second, third, fourth = sorted(path.parent for path in inspected.glob("*/run.json"))
    Run.read(first).write(ended_at="2999-01-01T00:00:00.000+00:00")
    (second / "findings" / "rules.json").write_text('{"tool": "rules", "findings": [{"kind": 1}]}')
    (third / "findings" / "failures.json").write_text("[" * 100_000)
    (fourth / "findings").symlink_to(second / "findings")
    out, _ = call(inspected, "--format", "json")
    (entry,) = json.loads(out)["entries"]
    assert [[one["finding"], one["runs"], one["of"]] for one in entry["findings"]] == [["timeout", 1, 1]]


def test_findings_cannot_break_a_table(call: Report, inspected: Path) -> None:
    run = Run.read(min(path.parent for path in inspected.glob("*/run.json")))
    judge = {
        "model": "\x1b[2J|\n",
        "rubric": [],
        "answers": {"a\nb": "yes", "c": ["yes"]},
        "calibration": {"questions": 1},
    }
    Findings.of("rules", [], category="<b>\n", judge=judge).write_for(run.paths)
    table = call(inspected)[0].split("\n\n")[-1]
    rows = [re.split("  +", line)[2:] for line in table.splitlines()]
    assert ["judge ?[2J|? says yes: a?b", "1", "1", "100.0", "3", "uncalibrated"] in rows
    assert "<b>" not in table
