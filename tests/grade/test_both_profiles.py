"""One submission graded under both profiles: where that is possible, what is stamped, and what standings do with it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench.cli import main
from mlebench.core.errors import NotPreparedError, PrerequisiteError, UnknownCompetitionError
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv, grade_csv_under_profiles, grade_jsonl_under_profiles, require_same_tests
from mlebench.registry import Competition, Registry
from mlebench.report import make_standings

PIZZA, MATERIALS, TITANIC = "random-acts-of-pizza", "nomad2018-predict-transparent-conductors", "spaceship-titanic"
BREATHS = "ventilator-pressure-prediction"  # v2 prints more digits of the answers
DefaultTwin = Callable[..., Competition]


def _both(default_twin: DefaultTwin, id: str) -> tuple[Competition, Competition]:
    return default_twin(id), default_twin(id, "v2")


@pytest.mark.parametrize("id", [PIZZA, BREATHS, "text-normalization-challenge-english-language"])
def test_profiles_with_the_same_test_rows_pass(default_twin: DefaultTwin, id: str) -> None:
    require_same_tests(*_both(default_twin, id))


def test_other_test_rows_are_refused_with_their_numbers(default_twin: DefaultTwin) -> None:
    first, later = _both(default_twin, TITANIC)
    ids = [{*pd.read_csv(one.sample_submission)["PassengerId"]} for one in (first, later)]
    numbers = f"{len(ids[0])} under v1, {len(ids[1])} under v2, {len(ids[0] & ids[1])} ids in both"
    with pytest.raises(PrerequisiteError, match=rf"^{TITANIC}: .*{numbers}"):
        require_same_tests(first, later)


def test_the_same_ids_of_other_rows_prove_nothing(default_twin: DefaultTwin) -> None:
    first, later = _both(default_twin, MATERIALS)
    assert [*pd.read_csv(first.sample_submission)["id"]] == [*pd.read_csv(later.sample_submission)["id"]]
    with pytest.raises(PrerequisiteError, match=rf"^{MATERIALS}: .*under the same ids"):
        require_same_tests(first, later)


def test_two_different_twins_are_refused(tmp_path: Path) -> None:
    pair = [Registry(tmp_path, profile).get_competition(BREATHS) for profile in ("v1", "v2")]
    for seed, competition in enumerate(pair):
        prepare(competition, TwinSource(seed))
    with pytest.raises(PrerequisiteError, match="two different twins"):
        require_same_tests(*pair)


def test_missing_data_is_said_in_one_line_with_the_command(default_twin: DefaultTwin, tmp_path: Path) -> None:
    first, later = _both(default_twin, PIZZA)
    data = tmp_path / "data"
    shutil.copytree(first.paths.prepared, data / PIZZA / "prepared")
    for registry_of in (Registry(data), Registry(tmp_path / "none")):
        with pytest.raises(NotPreparedError, match=f"`mlebench prepare -c {PIZZA} --profile v2 .*` first") as error:
            grade_csv_under_profiles(first.gold_submission, PIZZA, registry_of)
        assert "\n" not in str(error.value)
    assert f"`mlebench prepare -c {PIZZA} --data-dir" in str(error.value)  # where v1 is missing, too
    assert later.profile == "v2"


def test_both_reports_are_those_of_each_profile_and_the_second_is_stamped(default_twin: DefaultTwin) -> None:
    first, later = _both(default_twin, PIZZA)
    registry = Registry(first.paths.data_dir)
    reports = grade_csv_under_profiles(first.sample_submission, PIZZA, registry)
    assert [*reports] == ["v1", "v2"]
    for competition in (first, later):
        alone, together = grade_csv(first.sample_submission, competition), reports[competition.profile]
        assert (alone.score, alone.data, alone.profile) == (together.score, together.data, together.profile)
        assert alone.seen is None
    assert [report.seen for report in reports.values()] == [None, "v1"]


def test_a_batch_refuses_single_competitions_by_name(default_twin: DefaultTwin, tmp_path: Path) -> None:
    first, _ = _both(default_twin, PIZZA)
    _both(default_twin, TITANIC)
    lines = [
        {"competition_id": PIZZA, "submission_path": str(first.gold_submission), "seed": 0},
        {"competition_id": PIZZA, "submission_path": str(tmp_path / "none.csv"), "seed": 1},
        {"competition_id": TITANIC, "submission_path": "s.csv"},
        {"competition_id": "no-such-competition", "submission_path": "s.csv"},
        {"competition_id": PIZZA},
    ]
    file, output = tmp_path / "s.jsonl", tmp_path / "out"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    summaries = grade_jsonl_under_profiles(file, output, Registry(first.paths.data_dir))
    for profile, summary in summaries.items():
        (written,) = (output / profile).iterdir()
        assert json.loads(written.read_text()) == summary
        assert [report["status"] for report in summary["competition_reports"]] == ["graded", "missing"]
        assert {report["seen"] for report in summary["competition_reports"]} == {None if profile == "v1" else "v1"}
        assert [row["status"] for row in summary["unjudged"]] == ["not_comparable", "unknown_competition", "bad_entry"]
        assert summary["unjudged"][0]["reason"].startswith(f"{TITANIC}: its profiles have different test rows")
        assert not any(output.glob("*.json"))
    (report,) = (output / "v2").iterdir()
    with pytest.raises(PrerequisiteError, match=f"{report}.*{PIZZA}.*made on v1's data: .*never enter standings"):
        make_standings([report])
    (report,) = (output / "v1").iterdir()
    assert make_standings([report]).profile == "v1"


def test_a_competition_without_v2_is_refused(tmp_path: Path) -> None:
    """One of the user's own: the package's may all get the profile."""
    folder = tmp_path / "more" / "river-fish"
    shutil.copytree(Registry().competition_dir(TITANIC), folder)
    config = folder / "config.yaml"
    text = config.read_text().replace(f"id: {TITANIC}", "id: river-fish")
    config.write_text(text[: text.index("\nv2:") + 1])
    registry = Registry(tmp_path / "data", also=[tmp_path / "more"])
    with pytest.raises(UnknownCompetitionError, match="river-fish has no profile v2 yet"):
        grade_csv_under_profiles(tmp_path / "s.csv", "river-fish", registry)


def _ran(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)


def test_the_commands_print_both(default_twin: DefaultTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = _both(default_twin, PIZZA)
    where = ["--profile", "v1,v2", "--data-dir", str(first.paths.data_dir)]
    assert _ran("grade-sample", str(first.sample_submission), PIZZA, *where) == 0
    assert [*json.loads(capsys.readouterr().out)] == ["v1", "v2"]
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps({"competition_id": PIZZA, "submission_path": str(first.gold_submission)}))
    assert _ran("grade", "--submission", str(file), "--output-dir", str(tmp_path / "out"), *where) == 0
    captured = capsys.readouterr()
    counts = json.loads(captured.out)
    assert [(profile, counts[profile]["total_runs"]) for profile in counts] == [("v1", 1), ("v2", 1)]
    lines = [line.split()[:4] for line in captured.err.splitlines() if line.startswith(PIZZA)]
    assert lines == [[PIZZA, "v1", "graded", "1"], [PIZZA, "v2", "graded", "1"]]
    assert _ran("grade", "a-group", "--profile", "v1,v2") == 2
    assert "needs --submission" in capsys.readouterr().err
