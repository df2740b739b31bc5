"""What every competition folder must satisfy. Adding a folder adds its tests; the golden figures are the reference's.

The checks are those of `mlebench test-competition`, on four twins of each of our own competitions.
"""

import csv
import re
from pathlib import Path

import pandas as pd
import pytest

from mlebench.contract import DATA, FACTS, GOLDEN, TEXT, CompetitionCase, ContractCheck, faults_of
from mlebench.contract.grading_checks import as_table
from mlebench.contract.leaks import LeakSearch
from mlebench.core.paths import PROFILES
from mlebench.data.gold import recorded_cost
from mlebench.registry import Registry
from mlebench.scoring import Thresholds, read_leaderboard

pytestmark = pytest.mark.bytes


def faults(checks: tuple[ContractCheck, ...], case: CompetitionCase) -> dict[str, list[str]]:
    return {check.name: found for check in checks if (found := faults_of(check, case))}


def test_bytes_scores_and_verdicts_match_the_reference(case: CompetitionCase) -> None:
    assert case.golden
    assert faults(GOLDEN, case) == {}


def test_prepared_data_and_grader_keep_the_contract(case: CompetitionCase) -> None:
    assert faults(DATA, case) == {}


def test_what_grading_gold_takes_is_known(twin: CompetitionCase) -> None:
    cost = recorded_cost(twin.competition)
    assert cost is not None
    assert cost.size == twin.competition.gold_submission.stat().st_size


def test_truth_of_test_rows_in_a_public_table_would_be_found(twin: CompetitionCase) -> None:
    answers, id = twin.competition.answers, twin.competition.submission["id"]
    text = {"dtype": str, "keep_default_na": False}  # as an author may write them: with leading zeros
    leak = pd.read_csv(answers, **text) if answers.suffix == ".csv" else as_table(twin.answers())
    if parts := twin.config.joined_id:
        leak[parts] = leak[id].str.split("_", expand=True)
    assert list(LeakSearch(twin).table("more.csv", leak)) != []


def test_description_tells_the_truth(twin: CompetitionCase) -> None:
    assert faults(TEXT, twin) == {}


def test_folder_and_twin_keep_the_contract(competition_id: str, tmp_path: Path) -> None:
    assert faults(FACTS, CompetitionCase(Registry(tmp_path).get_competition(competition_id))) == {}


def test_medal_thresholds_and_facts_are_the_published_ones(competition_id: str) -> None:
    with (Path(__file__).parents[1] / "golden" / "competitions.csv").open(encoding="utf-8") as stream:
        facts = next(row for row in csv.DictReader(stream) if row["id"] == competition_id)
    competition = Registry().get_competition(competition_id)
    board = read_leaderboard(competition.leaderboard)
    assert len(board) == int(facts["teams"])
    for name, value in Thresholds.of(board)._asdict().items():
        assert value == pytest.approx(float(facts[name]), abs=1e-12), name
    assert (competition.complexity, competition.grader.name) == (facts["complexity"], facts["grader_name"])
    assert competition.sample_score == pytest.approx(float(facts["sample_score"]), abs=0, rel=0, nan_ok=True)
    assert facts["category"] in ("", competition.category)


def test_clients_find_the_parts_of_a_description_by_their_headings(competition_id: str) -> None:
    """The patterns do what public clients do: a generator of shorter tasks, and a prompt that adds the metric."""
    for text in _descriptions(competition_id):
        _require_parts(text)


def _descriptions(competition_id: str) -> list[str]:
    """The texts of all profiles that a competition has."""
    registries = [Registry(profile=profile) for profile in PROFILES]
    return [
        registry.get_competition(competition_id).description
        for registry in registries
        if competition_id in registry.list_competition_ids()
    ]


def _require_parts(text: str) -> None:
    parts = {
        title: re.search(rf"^##\s+{title}\s*\n(.*?)(?=^##\s+|\Z)", text, re.MULTILINE | re.DOTALL)
        for title in ("Description", "Evaluation", "Dataset Description")
    }
    described, evaluated, data = (part[1].strip() if part else "" for part in parts.values())
    metric, _, form = re.split(r"^(#{2,5}\s+Submission(?: File| Format)?)\s*$", evaluated, flags=re.MULTILINE)
    assert len(described) > 200
    assert re.search(r"\b(higher|lower) is\s+better", metric, re.IGNORECASE)
    assert "```" in form
    assert "submission" in data.lower()
    up_to_next_heading = re.search(r"^#+\s*Evaluation\b.*?(?=^#+\s|\Z)", text, re.MULTILINE | re.DOTALL)
    assert up_to_next_heading is not None
    assert up_to_next_heading[0].strip().endswith(metric.strip())


def test_description_is_neither_short_nor_long(competition_id: str) -> None:
    for text in _descriptions(competition_id):
        assert 40 <= len(text.splitlines()) <= 120
