import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.tracebacks import last_raised
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.integrity.failures.categories import REASONS, Classification, classify, classify_isolated
from mlebench.integrity.failures.crashes import HEAD, TAIL, find_crash, lines_of
from mlebench.integrity.failures.inspection import words
from mlebench.integrity.failures.rules import RULES
from mlebench.integrity.subjects import AgentFile, Subject, of_run
from mlebench.records import write
from mlebench.records.group import AgentFacts, GroupRecord, Limits
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Registry

FROZEN = Path(__file__).parent / "failures"
CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FROZEN.glob("*.json"))]
NAMED = {case["name"]: case for case in CASES}


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twins that the frozen runs were made on."""
    folder = tmp_path_factory.mktemp("data")
    for id in sorted({case["competition"] for case in CASES}):
        prepare(Registry(str(folder)).get_competition(id), TwinSource())
    return folder


Thaw = Callable[..., Group]


@pytest.fixture(scope="session")
def thaw(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Thaw:
    """A run group of frozen runs, as it was on disk."""

    def call(*cases: dict[str, Any], **facts: Any) -> Group:
        root = tmp_path_factory.mktemp("runs") / "2026-01-01T00-00-00-GMT_run-group_agent"
        root.mkdir()
        record = GroupRecord(
            id=root.name,
            created_at="2026-01-01T00:00:00+00:00",
            agent=AgentFacts(name="agent"),
            agent_source="agent",
            competitions=sorted({case["competition"] for case in cases}),
            seeds=1,
            data_dir=str(data_dir),
            profile="v1",
            twin=True,
            sandbox="process",
            limits=Limits(seconds=60),
        ).changed(**facts)
        write(root / "group.json", record)
        for case in cases:
            folder = root / f"{case['competition']}_{case['record']['run_id']}"
            folder.mkdir()
            report = case["record"]["report"] and {"competition_id": case["competition"], **case["record"]["report"]}
            (folder / "run.json").write_text(json.dumps(case["record"] | {"report": report}))
            for name, text in case["files"].items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text, newline="", encoding="utf-8")
        return Group.read(root)

    return call


def verdicts(group: Group) -> Iterator[tuple[Run, Classification]]:
    for run in group.runs():
        yield run, classify(of_run(run, group))


def mistakes(thaw: Thaw, cases: list[dict[str, Any]]) -> list[str]:
    """The cases that get a different category or cause from the one they were made for, or lack an expected `also`."""
    labels = {case["record"]["run_id"]: case for case in cases}
    wrong = []
    for run, found in verdicts(thaw(*cases)):
        case = labels[run.record.run_id]
        if (found.category, found.cause) != (case["category"], case["cause"]) or not {*case["also"]} <= {*found.also}:
            wrong.append(f"{case['name']}: {found.category}, {found.cause}, also {found.also}: {found.says}")
    return wrong


def test_rules_fit_the_runs_they_were_written_for(thaw: Thaw) -> None:
    assert mistakes(thaw, [case for case in CASES if not case["held_out"]]) == []


def test_rules_fit_held_out_runs(thaw: Thaw) -> None:
    """At least 90 % of them; docs/understanding/inspecting.md says how this was measured."""
    held_out = [case for case in CASES if case["held_out"]]
    assert len(held_out) >= 50
    assert len(wrong := mistakes(thaw, held_out)) <= len(held_out) // 10, wrong


def test_every_rule_has_its_test() -> None:
    assert [rule.category for rule in RULES] == list(REASONS)


def only(group: Group) -> Classification:
    ((_, verdict),) = verdicts(group)
    return verdict


def changed(name: str, files: dict[str, str] | None = None, **record: Any) -> dict[str, Any]:
    """A frozen run with another record, or with other files."""
    case = NAMED[name]
    return {**case, "record": case["record"] | record, "files": case["files"] if files is None else files}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("missing-module", "no_submission"),
        ("endless", "timeout"),
        ("memory", "out_of_memory"),
        ("wrong-columns", "invalid_format"),
        ("abort", "crashed"),  # by its exit code
        ("inverted-pizza", "metric_misunderstood"),
        ("honest-titanic", "below_median"),
        ("medal", "medal"),
    ],
)
def test_records_alone_are_enough(thaw: Thaw, tmp_path: Path, name: str, category: str) -> None:
    group = thaw(changed(name, files={}), data_dir=str(tmp_path))
    assert only(group).category == category


def test_a_timeout_with_a_graded_submission_is_graded_and_says_timeout(thaw: Thaw) -> None:
    found = only(thaw(NAMED["medal-at-the-last-moment"]))
    assert (found.category, found.also) == ("medal", ("timeout",))


@pytest.mark.parametrize(
    ("name", "category", "also"),
    [("sample", "crashed", "trivial"), ("honest-titanic", "crashed", "below_median"), ("medal", "medal", "crashed")],
)
def test_a_crash_comes_before_a_poor_score_but_not_before_a_good_one(
    thaw: Thaw, name: str, category: str, also: str
) -> None:
    files = NAMED[name]["files"] | {"run.log": PLAIN}
    how = "the agent ended with exit code 1: ModuleNotFoundError: No module named 'timm'"
    found = only(thaw(changed(name, files=files, ended="agent_error", detail=how)))
    assert (found.category, also in found.also) == (category, True)
    if category == "crashed":
        assert (found.cause, found.says) == ("missing_package", "ModuleNotFoundError: No module named 'timm'")
        silent = only(thaw(changed(name, files=files | {"run.log": ""}, ended="agent_error", detail="it ended with 3")))
        assert (silent.category, silent.cause, silent.says) == ("crashed", None, "it ended with 3")


def test_words_of_the_agent_after_its_exit_code_do_not_hide_the_signal(thaw: Thaw) -> None:
    how = "the agent ended with exit code 134: free(): invalid pointer"
    assert only(thaw(changed("abort", files={}, detail=how))).category == "crashed"


def test_a_run_without_a_model_is_named_with_its_cause(thaw: Thaw) -> None:
    model = {"calls": 3, "failed": 3, "unavailable": {"cause": "429 quota\x1b[2J", "says": "no credit"}}
    found = only(thaw(changed("medal", ended="model_unavailable", report=None, detail="no call", model=model)))
    assert (found.category, found.cause, found.says) == ("model_unavailable", "429 quota", "no call")
    assert words(found.category, found.cause) == "model unavailable: 429 quota"


def test_a_run_that_nobody_works_on_any_more_is_not_running(thaw: Thaw) -> None:
    found = only(thaw(changed("medal", files={}, state="running", ended=None, report=None, attempts=[])))
    assert (found.category, found.says) == ("unfinished", "the run is planned")


def test_a_failing_grader_is_not_the_agents_fault(thaw: Thaw) -> None:
    report = NAMED["medal"]["record"]["report"] | {"status": "grader_error", "reason": "ValueError: no", "score": None}
    found = only(thaw(changed("medal", report=report | {"any_medal": False, "above_median": False})))
    assert (found.category, found.says) == ("infrastructure", "it was not graded: ValueError: no")


def test_what_inspect_rules_has_found_is_suspicious(thaw: Thaw) -> None:
    group = thaw(NAMED["medal"])
    (run,) = group.runs()
    run.paths.findings.mkdir()
    broken = {"kind": "violation", "rule": "grader", "says": "it called a grader", "evidence": []}
    run.paths.finding("rules").write_text(json.dumps({"tool": "rules", "findings": [broken]}))
    found = only(group)
    assert (found.category, found.says, found.also) == ("suspicious", "rules: it called a grader", ("medal",))


def test_data_with_another_identity_is_not_used(thaw: Thaw) -> None:
    report = NAMED["cents"]["record"]["report"] | {"data": "another"}
    assert only(thaw(changed("cents", report=report))).category == "below_median"


def test_a_run_that_matches_no_rule_is_shown_with_its_last_lines(thaw: Thaw) -> None:
    report = NAMED["medal"]["record"]["report"] | {"status": "unheard of", "any_medal": False, "above_median": False}
    lines = "".join(f"line {number}\n" for number in range(30))
    found = only(thaw(changed("medal", files={"run.log": lines}, report=report)))
    assert (found.category, found.last_lines[0], found.last_lines[-1]) == ("other", "line 20", "line 29")


def test_evidence_is_quoted_verbatim_from_the_log(thaw: Thaw) -> None:
    for name in ("wrong-path", "cuda-torch", "ranks", "raised-from", "leaky-trajectory"):
        (evidence, *_) = only(thaw(NAMED[name])).evidence
        assert evidence.quote in NAMED[name]["files"][evidence.file]


# Logs of other forms than those that were frozen: launchers, actors, loggers

PLAIN = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    import timm
ModuleNotFoundError: No module named 'timm'
"""
LAUNCHER = """Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====
train.py FAILED
Root Cause (first observed failure):
[0]:
  exitcode  : {code} (pid: 71)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PLAIN + LAUNCHER.format(code=1), "missing_package"),
        (LAUNCHER.format(code=-9), "out_of_memory"),
        (LAUNCHER.format(code=-11), "native"),
        ("".join(f"(Trainable pid=31, ip=10.0.0.7) {line}\n" for line in PLAIN.splitlines()), "missing_package"),
        ("".join(f"ERROR 12-11 08:55:56 [run.py:59] {line}\n" for line in PLAIN.splitlines()), "missing_package"),
        ("Epoch 1:   0%|          | 0/30 [00:00<?, ?it/s]" + PLAIN, "missing_package"),
        (PLAIN.replace("ModuleNotFoundError:", "ray.exceptions.RayTaskError(KeyError):"), "code"),
        (
            PLAIN
            + "Traceback (most recent call last):\n"
            + "INFO: step 3\nloss: 0.3\nIndexError: list index out of range",
            "code",
        ),
    ],
)
def test_tracebacks_are_found_in_many_forms(tmp_path: Path, text: str, cause: str) -> None:
    assert crash_in(log(tmp_path, text.encode())) == cause


# Hostile logs


def log(tmp_path: Path, content: bytes) -> AgentFile:
    (tmp_path / "run.log").write_bytes(content)
    return AgentFile("run.log", tmp_path, ("run.log",))


def crash_in(source: AgentFile) -> str | None:
    found = find_crash([source], failed=True, detail="")
    return found.cause if found else None


TRACEBACK = b"Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'lightgbm'\n"


def test_both_ends_of_a_huge_log_are_read(tmp_path: Path) -> None:
    source = log(tmp_path, TRACEBACK)
    os.truncate(tmp_path / "run.log", 1 << 36)
    assert crash_in(source) == "missing_package"
    with (tmp_path / "run.log").open("r+b") as file:
        file.write(b"begun" + bytes(200))
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + TRACEBACK)
    assert crash_in(source) == "missing_package"
    assert lines_of(source)[0] == "begun"
    assert sum(map(len, lines_of(source))) <= HEAD + TAIL


@pytest.mark.parametrize(
    "filler",
    [
        bytes(range(256)),
        b"[" * 50,
        b"(" * 50,
        b"Traceback (most recent call last):\n",
        b"\x1b[31m",
        b"\x1b]0;",
        b"a.b" * 9,
    ]
    + [b": : ", b"File x: " * 20, b"The above exception was the direct cause\n", b"KeyError: x\n", b"columns column "],
    ids=range(12),
)
def test_no_filler_hides_the_end_or_takes_forever(tmp_path: Path, filler: bytes) -> None:
    source = log(tmp_path, filler * (600_000 // len(filler)) + b"\x1b\\\n" + TRACEBACK)
    assert crash_in(source) == "missing_package"


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=60) | st.just("Traceback (most recent call last)")))
def test_any_lines_can_be_searched(lines: list[str]) -> None:
    found = last_raised(lines)
    assert found is None or found.text == lines[found.line]


def test_a_run_that_takes_too_much_memory_is_judged_by_its_records(thaw: Thaw, tmp_path: Path) -> None:
    case = changed("medal", files={"submission/submission.csv": "PassengerId,Transported\n" + "0,1\n" * 6_000_000})
    group = thaw(case)
    (run,) = group.runs()
    found = classify_isolated(of_run(run, group), Registry(group.record.data_dir), memory=1 << 20)
    assert found.category == "medal"
    assert found.unread == "it took more than 1 MiB of memory"
    assert [one.rule for one in found.findings().findings] == ["medal", "not-inspected"]
    (tmp_path / "x.csv").write_text(case["files"]["submission/submission.csv"])
    line = Subject("submissions.jsonl", "line 1", case["competition"], tmp_path / "x.csv", (), ())
    assert classify_isolated(line, Registry(group.record.data_dir), memory=1 << 20).category == "other"


def test_an_agents_text_cannot_control_a_terminal(thaw: Thaw) -> None:
    hostile = "Traceback (most recent call last):\nKeyError: '\x1b]0;owned\x07\x1b[2J\u202eevil\x9b'\n"
    found = only(thaw(changed("column", files={"run.log": hostile})))
    assert (found.category, found.says) == ("crashed", "KeyError: '\\u202eevil'")
    report = NAMED["wrong-columns"]["record"]["report"] | {"reason": "no column \x1b[2J\ud800"}
    assert only(thaw(changed("wrong-columns", report=report))).says == "no column ?"


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"value": "0.9"}', '{"value": NaN}', '{"value": 1e999}', '{"value": true}', "\0", "null", "[[]]"],
)
def test_an_empty_validation_is_not_a_gap(thaw: Thaw, text: str) -> None:
    files = NAMED["leaky-validation"]["files"] | {"logs/validation.json": text, "logs/trajectory.jsonl": f"{text}\n"}
    assert only(thaw(changed("leaky-validation", files=files))).category == "below_median"


def test_a_metric_with_the_opposite_direction_is_not_compared(thaw: Thaw) -> None:
    told = '{"metric": "log loss", "value": 0.2, "higher_is_better": false}'
    files = NAMED["leaky-validation"]["files"] | {"logs/validation.json": told}
    assert only(thaw(changed("leaky-validation", files=files))).category == "below_median"


# The command


def inspect(*words: str, data_dir: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "mlebench", "inspect", "--data-dir", str(data_dir), "failures", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_the_command_shows_tables_and_keeps_findings(thaw: Thaw, data_dir: Path) -> None:
    names = ("missing-module", "missing-name", "cents", "medal")
    group = thaw(*(NAMED[name] for name in names))
    shown = inspect(str(group.paths.root), data_dir=data_dir).stdout
    assert "code crashed: missing package  2     50 %   ███████████████\n" in shown
    assert shown.index("missing package") < shown.index("silver medal")
    made = json.loads(inspect(str(group.paths.root), "--json", data_dir=data_dir).stdout)
    assert [(one["category"], one["cause"], one["runs"]) for one in made["agents"]] == [
        ("crashed", "missing_package", 2),
        ("metric_misunderstood", None, 1),
        ("medal", None, 1),
    ]
    kept = {run.paths.root.name: json.loads(run.paths.finding("failures").read_text()) for run in group.runs()}
    assert len(kept) == 4
    for run in made["runs"]:
        assert kept[run["run"]]["facts"].items() <= run.items()


def test_a_folder_that_cannot_be_written_to_is_only_shown(thaw: Thaw, data_dir: Path, tmp_path: Path) -> None:
    group = thaw(NAMED["medal"])
    (run,) = group.runs()
    run.paths.findings.write_text("not a folder")
    output = tmp_path / "out.json"
    done = inspect(str(group.paths.root), "--json", "-o", str(output), data_dir=data_dir)
    assert "The findings are shown but not stored" in done.stderr
    assert json.loads(output.read_text())["runs"][0]["category"] == "medal"


def test_json_lines_are_judged_by_what_they_name(thaw: Thaw, data_dir: Path, tmp_path: Path) -> None:
    for name in ("missing-module", "sample", "honest-titanic"):
        for part, text in NAMED[name]["files"].items():
            (tmp_path / f"{name}{Path(part).suffix}").write_text(text, newline="")
    lines = [
        {"competition_id": NAMED[name]["competition"], "submission_path": f"{name}.csv", "logs_path": f"{name}.log"}
        for name in ("missing-module", "sample", "honest-titanic")
    ]
    lines.append({"competition_id": "spaceship-titanic"})
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    made = json.loads(inspect(str(path), "--json", data_dir=data_dir).stdout)
    assert [run["category"] for run in made["runs"]] == ["crashed", "trivial", "not_graded", "no_submission"]
