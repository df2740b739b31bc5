"""What every competition folder must satisfy. Adding a folder adds its tests; golden figures are the reference's."""

import csv
import importlib
import io
import json
from pathlib import Path
from typing import Any

import bson
import numpy as np
import pandas as pd
import pytest
from fingerprints import members_of
from folders import contents
from golden_cases import Case, score_or_verdict

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.errors import InvalidSubmissionError
from mlebench.grade import grade_csv, stand_in, validate_format
from mlebench.grade.answers import load_answers
from mlebench.registry import Registry
from mlebench.scoring import lower_is_better, read_leaderboard
from mlebench.validate.reading import read_submission

pytestmark = pytest.mark.bytes

# Ids are given out anew on each side of the split, so that train and test ids are equal without being the same rows
# (in text normalization it is sentences that are numbered anew, and the train table has no id column).
RENUMBERED = {
    "nomad2018-predict-transparent-conductors",
    "text-normalization-challenge-english-language",
    "text-normalization-challenge-russian-language",
    "ventilator-pressure-prediction",
}

# Tables that tell what the classes are called; they have a row for each class and none for a test row.
CLASS_NAMES = {("cdiscount-image-classification-challenge", "category_names.csv/category_names.csv")}

# Tables of further values that a target can take, without ids: nothing says that one belongs to a test row.
FURTHER_VALUES = {("bms-molecular-translation", "extra_approved_InChIs.csv/extra_approved_InChIs.csv")}

# Rows with negative labels, or none, do not count, and v1 does not look for faults in them. So a message may depend
# on which rows count, but not on the labels of those that do.
SOME_ROWS_DO_NOT_COUNT = {"jigsaw-toxic-comment-classification-challenge", "osic-pulmonary-fibrosis-progression"}

# Only some ids of the sample count, and which is secret: gold has these alone, but the format check asks for all.
COUNTED_IDS_ARE_SECRET = {"h-and-m-personalized-fashion-recommendations"}

# Where public tables do not have the id column of submissions: columns that tell their rows apart instead.
KEYS = {
    "osic-pulmonary-fibrosis-progression": ["Patient", "Weeks"],
    "smartphone-decimeter-2022": ["UnixTimeMillis"],
}

# The same, where the answers have the id column alone: these columns, joined, are the id.
JOINED_IDS = {"rsna-breast-cancer-detection": ["patient_id", "laterality"]}

# Tables that give some test rows away on purpose: of each test patient one visit is known.
GIVEN_ROWS = {("osic-pulmonary-fibrosis-progression", "test.csv/test.csv")}

# The truth of a row is an order of things that are public. To give it to another row would make no sense; its words
# change places instead.
ORDERS = {"AI4Code"}


@pytest.fixture
def written(case: Case, tmp_path: Path) -> dict[str, Path]:
    """Every submission of a case as a file."""
    paths = {}
    for number, (name, content) in enumerate(case.submissions.items()):
        paths[name] = tmp_path / f"{number}.csv"
        paths[name].write_bytes(content)
    return paths


def test_prepared_files_are_the_references(case: Case) -> None:
    assert case.fingerprint == case.golden["files"]


def test_scores_and_verdicts_are_the_references(case: Case, written: dict[str, Path]) -> None:
    assert written.keys() == case.golden["scores"].keys()
    assert {name: score_or_verdict(path, case.competition) for name, path in written.items()} == case.golden["scores"]


def test_format_check_without_answers_accepts_only_what_the_grader_accepts(
    case: Case, written: dict[str, Path]
) -> None:
    accepted = {name for name, path in written.items() if validate_format(path, case.competition)[0]}
    assert {"sample", "gold"} - accepted <= ({"gold"} if case.competition.id in COUNTED_IDS_ARE_SECRET else set())
    assert accepted <= {name for name, score in case.golden["scores"].items() if score != "invalid"}


def test_error_messages_do_not_depend_on_the_truth(case: Case, written: dict[str, Path]) -> None:
    answers = load_answers(case.competition.answers)
    facts = case.competition.submission
    truth = _table(answers).loc[:, facts.get("truth", facts["targets"])]
    rows = np.arange(len(truth))
    if case.competition.id in SOME_ROWS_DO_NOT_COUNT:
        rows = np.flatnonzero((truth >= 0).all(axis=1))
    source = np.arange(len(truth))
    source[rows] = np.random.RandomState(3).permutation(rows)
    permuted = _table(answers).assign(**{name: truth[name].to_numpy()[source] for name in truth})
    if case.competition.id in ORDERS:
        permuted = _table(answers).assign(**{name: truth[name].map(_words_reversed) for name in truth})
    if isinstance(answers, list):
        permuted = permuted.to_dict("records")
    for name, path in written.items():
        assert _message(case, path, answers) == _message(case, path, permuted), name


def _words_reversed(text: str) -> str:
    return " ".join(reversed(text.split()))


def _table(answers: Any) -> pd.DataFrame:
    """Answers as a table; those in JSON lines are a list of records."""
    return pd.DataFrame(answers) if isinstance(answers, list) else answers


def _message(case: Case, path: Path, answers: Any) -> str | None:
    try:
        case.competition.grader.grade_fn(read_submission(path), answers)
    except InvalidSubmissionError as error:
        return str(error)
    return None


def test_gold_earns_gold_and_sample_is_valid(case: Case, written: dict[str, Path]) -> None:
    assert grade_csv(written["gold"], case.competition).gold_medal
    assert grade_csv(written["sample"], case.competition).valid_submission


def test_public_files_do_not_hold_the_truth_of_test_rows(case: Case) -> None:
    competition, facts = case.competition, case.competition.submission
    truth = facts.get("truth", facts["targets"])
    sample = _table(stand_in(competition))
    answers = _table(load_answers(competition.answers))
    test_ids = set(map(str, answers[facts["id"]])) if facts["id"] in sample else set()
    for name, table in _public_tables(competition.public_dir):
        if set(truth) & set(table.columns) and not _is_sample(table, sample, facts["id"]):
            if competition.id in RENUMBERED:  # ids prove nothing; only the table to train on may hold the truth
                assert "train" in name
                continue
            if (competition.id, name) in CLASS_NAMES:
                assert not any(table[column].duplicated().any() for column in truth)
                continue
            if (competition.id, name) in FURTHER_VALUES:
                assert list(table.columns) == truth
                continue
            if (competition.id, name) in GIVEN_ROWS:
                assert not table["Patient"].duplicated().any()
                continue
            if keys := KEYS.get(competition.id):
                assert not _rows_of(table, keys) & _rows_of(answers, keys), name
                continue
            if joined := JOINED_IDS.get(competition.id):
                table[facts["id"]] = table[joined].agg("_".join, axis=1)
            assert facts["id"] in table.columns, name
            assert not set(map(str, table[facts["id"]])) & test_ids, name


def _rows_of(table: pd.DataFrame, keys: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(map(str, table[key]) for key in keys), strict=True))


def _is_sample(table: pd.DataFrame, sample: pd.DataFrame, id: str) -> bool:
    return id in table and list(map(str, table[id])) == list(map(str, sample[id]))


def _public_tables(public: Path) -> list[tuple[str, pd.DataFrame]]:
    tables = []
    for path in sorted(path for path in public.rglob("*") if path.is_file()):
        members = members_of(path.read_bytes()) or {path.name: path.read_bytes()}
        for name, content in members.items():
            if name.endswith(".csv"):
                tables.append((f"{path.name}/{name}", pd.read_csv(io.BytesIO(content), dtype=str)))
            elif name.endswith(".tsv"):
                tables.append((f"{path.name}/{name}", pd.read_csv(io.BytesIO(content), sep="\t", dtype=str)))
            elif name.endswith(".json") and content.startswith(b"["):
                tables.append((f"{path.name}/{name}", pd.DataFrame(json.loads(content))))
            elif name.endswith(".jsonl"):
                tables.append((f"{path.name}/{name}", pd.DataFrame(map(json.loads, content.splitlines()))))
            elif name.endswith(".parquet"):
                tables.append((f"{path.name}/{name}", pd.read_parquet(io.BytesIO(content))))
            elif name.endswith(".bson"):
                tables.append((f"{path.name}/{name}", pd.DataFrame(bson.decode_all(content))))
    return tables


def test_prepare_is_deterministic_and_leaves_raw_untouched(competition_id: str, tmp_path: Path) -> None:
    """Once with the pipeline, once called directly with plain paths, as existing clients do."""
    before, after = [], []
    for folder in ("a", "b"):
        competition = Registry(tmp_path / folder).get_competition(competition_id)
        source = TwinSource(seed=5)
        source.fetch(competition)
        before.append(_snapshot(competition.raw_dir))
        if folder == "a":
            prepare(competition, source)
        else:
            module = importlib.import_module(f"mlebench.competitions.{competition_id}.prepare")
            module.prepare(competition.raw_dir, competition.public_dir, competition.private_dir)
            (competition.public_dir / "description.md").write_text(competition.description, encoding="utf-8")
        after.append(_snapshot(competition.raw_dir))
        assert before[-1] == after[-1]
    assert contents(tmp_path / "a" / competition_id / "raw") == contents(tmp_path / "b" / competition_id / "raw")
    assert contents(tmp_path / "a" / competition_id / "prepared") == contents(
        tmp_path / "b" / competition_id / "prepared"
    )


def _snapshot(folder: Path) -> dict[str, tuple]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_twins_of_other_seeds_and_sizes_differ(competition_id: str, tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    competition = registry.get_competition(competition_id)
    seen = [contents(TwinSource(seed, size).fetch(competition)) for seed, size in ((0, 1.0), (1, 1.0), (0, 2.0))]
    assert seen[0] != seen[1]
    assert sum(map(len, seen[2].values())) > 1.3 * sum(map(len, seen[0].values()))


def test_declared_direction_agrees_with_the_leaderboard(competition_id: str) -> None:
    competition = Registry().get_competition(competition_id)
    board = read_leaderboard(competition.leaderboard)
    assert competition.higher_is_better is (not lower_is_better(board))
    assert board == sorted(board, reverse=bool(competition.higher_is_better))


def test_medal_thresholds_and_facts_are_the_published_ones(competition_id: str) -> None:
    from mlebench.scoring import Thresholds

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


def test_description_names_the_original_in_its_header_only(competition_id: str) -> None:
    competition = Registry().get_competition(competition_id)
    header, _, body = competition.description.partition("\n---\n")
    assert competition_id in header
    for name in (competition_id, competition.name, "kaggle"):
        assert name.lower() not in body.lower(), name
    assert 40 <= len(competition.description.splitlines()) <= 120
    assert competition.obfuscated_description == body.lstrip()
