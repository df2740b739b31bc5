"""Profile v2: every competition keeps the contract, and one form of submissions holds for all of them."""

import csv
import io
import json
import math
import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.contract import DATA, FACTS, TEXT, CompetitionCase, ContractCheck, faults_of
from mlebench.contract.description_checks import example
from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.submission_columns import Kind
from mlebench.description import SUBMISSION_HEADING
from mlebench.grade import grade_csv, require_same_tests
from mlebench.kit import public_sample_bytes
from mlebench.registry import Competition
from mlebench.report import make_standings, standings_rows
from mlebench.validate.format_check import check_format
from mlebench.validate.submission_table import read_table

EXAMPLES = int(os.environ.get("MLEBENCH_V2_EXAMPLES", "50"))  # for each property and competition
pytestmark = pytest.mark.timeout(300 * max(1, EXAMPLES / 50))
SHARED = ("leaderboard", "twin")  # of all profiles
EXACT = 1e-5  # scores have five decimals
# A mask fits its own image only: on another one of another size it is refused. So masks lose runs instead.
MASKS_OF_ONE_IMAGE = ("hubmap-kidney-segmentation", "uw-madison-gi-tract-image-segmentation")
EXTREMES = ("1.7e308", "-1.7e308", "5e-324")


class WorseByTruth(NamedTuple):
    """A counterexample: with the mutation of this seed, one more true prediction makes the score worse, and why."""

    seed: int
    why: str


# Where the metric does not promise that a true prediction in place of a wrong one is never worse.
WORSE_BY_TRUTH = {
    "jigsaw-toxic-comment-classification-challenge": WorseByTruth(
        1, "ranks: a comment that does not count has the labels -1, and these are lower than those of a harmless one"
    ),
    "jigsaw-unintended-bias-in-toxicity-classification": WorseByTruth(
        1, "ranks: the truth is a share of annotators, and a low one that is true may be below wrong ones"
    ),
    "learning-agency-lab-automated-essay-scoring-2": WorseByTruth(
        39, "kappa: a true prediction also changes what agreement chance would give"
    ),
    "us-patent-phrase-to-phrase-matching": WorseByTruth(
        1, "a correlation: how far one row lies from the others' line, true or not, changes the line"
    ),
}


def test_the_contract_holds(corrected: CompetitionCase) -> None:
    own = [check for check in (*FACTS, *DATA, *TEXT) if check.name not in SHARED]
    assert {check.name: faults for check in own if (faults := faults_of(check, corrected))} == {}


def test_order_of_rows_and_columns_does_not_change_a_score(corrected: CompetitionCase) -> None:
    gold = _gold(corrected)

    @settings(max_examples=EXAMPLES)
    @given(seed=st.integers(0, 2**32 - 1))
    def same_score(seed: int) -> None:
        dice = random.Random(seed)
        moved = _with_predictions_swapped(gold, corrected, dice)
        shuffled = moved.sample(frac=1, random_state=seed).loc[:, dice.sample([*gold], len(gold.columns))]
        assert _score(corrected, shuffled) == _score(corrected, moved)

    same_score()


def test_gold_is_at_least_as_good_as_any_mutation_of_it(corrected: CompetitionCase) -> None:
    gold, sign = _gold(corrected), -1 if corrected.competition.lower_is_better else 1
    best = _score(corrected, gold)

    @settings(max_examples=EXAMPLES)
    @given(seed=st.integers(0, 2**32 - 1))
    def no_better(seed: int) -> None:
        mutated = _with_predictions_swapped(gold, corrected, random.Random(seed))
        assert sign * _score(corrected, mutated) <= sign * best + EXACT

    no_better()


def test_extreme_numbers_are_refused_or_scored_finitely(corrected: CompetitionCase) -> None:
    gold, targets = _gold(corrected), corrected.competition.submission["targets"]

    @settings(max_examples=EXAMPLES)
    @given(seed=st.integers(0, 2**32 - 1))
    def finite_or_refused(seed: int) -> None:
        dice = random.Random(seed)
        share, always = dice.choice((0, 0.1, 0.5, 1)), dice.randrange(len(gold))
        rows = [row for row in range(len(gold)) if row == always or dice.random() < share]
        extreme = gold.copy()
        extreme.loc[rows, targets] = gold.loc[rows, targets].map(lambda cell: _with_an_extreme(cell, dice))
        with suppress(InvalidSubmissionError):
            _score(corrected, extreme)  # warnings are errors

    finite_or_refused()


def test_one_more_true_prediction_never_makes_a_score_worse(corrected: CompetitionCase) -> None:
    gold = _gold(corrected)
    if exception := WORSE_BY_TRUTH.get(corrected.competition.id):
        assert _gain_by_truth(corrected, gold, exception.seed) < -EXACT, "the table's counterexample is none"
        return

    @settings(max_examples=EXAMPLES)
    @given(seed=st.integers(0, 2**32 - 1))
    def no_worse(seed: int) -> None:
        assert _gain_by_truth(corrected, gold, seed) >= -1.1 * EXACT  # both scores are rounded

    no_worse()


def _gain_by_truth(case: CompetitionCase, gold: pd.DataFrame, seed: int) -> float:
    """How much better a mutation of gold becomes when one of its wrong rows gets the true prediction."""
    dice, targets = random.Random(seed), case.competition.submission["targets"]
    mutated = _with_predictions_swapped(gold, case, dice)
    wrong = np.flatnonzero((mutated[targets].to_numpy() != gold[targets].to_numpy()).any(axis=1)).tolist()
    if not wrong:
        return 0
    row, better = dice.choice(wrong), mutated.copy()
    better.loc[row, targets] = gold.loc[row, targets]
    gain = _score(case, better) - _score(case, mutated)
    return -gain if case.competition.lower_is_better else gain


def _with_an_extreme(cell: str, dice: random.Random) -> str:
    """An extreme number in place of a cell, or of one of its words."""
    words = cell.split()
    if not words or dice.random() < 0.5:
        return dice.choice(EXTREMES)
    words[dice.randrange(len(words))] = dice.choice(EXTREMES)
    return " ".join(words)


Edit = Callable[[pd.DataFrame, list[str]], pd.DataFrame]
WRONG_ROWS: dict[str, Edit] = {
    "left out": lambda gold, _: gold.iloc[1:],
    "doubled": lambda gold, _: pd.concat([gold, gold.iloc[:1]]),
    "in place of another": lambda gold, _: pd.concat([gold.iloc[1:], gold.iloc[1:2]]),
    "added": lambda gold, key: pd.concat([gold, gold.iloc[:1].assign(**dict.fromkeys(key, "987654321"))]),
    "of an unknown id": lambda gold, key: pd.concat([gold.iloc[1:], gold.iloc[:1].assign(**dict.fromkeys(key, "x"))]),
    "without an id": lambda gold, key: pd.concat([gold.iloc[1:], gold.iloc[:1].assign(**dict.fromkeys(key, ""))]),
}


@pytest.mark.parametrize("edit", WRONG_ROWS)
def test_rows_must_be_exactly_those_of_the_sample(corrected: CompetitionCase, edit: str) -> None:
    facts = corrected.competition.submission
    wrong = WRONG_ROWS[edit](_gold(corrected), facts.get("key", [facts["id"]]))
    with pytest.raises(InvalidSubmissionError, match="sample submission"):
        _score(corrected, wrong)
    assert not check_format(io.BytesIO(_csv(wrong)), corrected.competition)[0]


def test_a_column_too_many_is_refused_by_name(corrected: CompetitionCase) -> None:
    with pytest.raises(InvalidSubmissionError, match="notes"):
        _score(corrected, _gold(corrected).assign(notes="1"))


def test_cells_must_have_the_declared_kind(corrected: CompetitionCase) -> None:
    facts, gold = corrected.competition.submission, _gold(corrected)
    if facts["values"] == "text":
        pytest.skip("its cells are text")
    for cell in ("", "nan", "inf", "-inf", "1e999", "abc", "1 2"):
        wrong = gold.copy()
        wrong.loc[len(gold) // 2, facts["targets"][-1]] = cell
        with pytest.raises(InvalidSubmissionError, match=re.escape(facts["targets"][-1])):
            _score(corrected, wrong)


RULES = re.compile(r"^\| column \| what each cell holds \|\n\|---\|---\|\n((?:\|.*\|\n)+)", re.MULTILINE)


def test_the_text_names_each_column_of_the_sample_submission(corrected: CompetitionCase) -> None:
    """The kinds are compared with the example in the text, by the contract."""
    header = next(csv.reader(io.StringIO(public_sample_bytes(corrected.competition).decode("utf-8-sig"))))
    for text in (corrected.competition.description, corrected.competition.obfuscated_description):
        (table,) = RULES.findall(text)
        cells = [row.strip("|").split("|")[0] for row in table.splitlines()]
        named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
        counted = sum(int(number) for cell in cells for number in re.findall(r"the (\d+) others", cell))
        assert {*named} <= {*header}
        assert len({*named}) + counted == len(header)
        section = text.partition(f"\n{SUBMISSION_HEADING}\n")[2].partition("\n## ")[0]
        assert table in f"{section}\n"


def test_a_wrong_kind_would_be_noticed(corrected: CompetitionCase) -> None:
    facts = corrected.competition.submission
    for kind in {*get_args(Kind)} - {facts["values"] if isinstance(facts["values"], str) else None}:
        wrong = replace(corrected.competition, submission=facts | {"values": kind})
        found = faults_of(ContractCheck(example), CompetitionCase(wrong))
        assert any(f"config.yaml declares {kind} for" in fault for fault in found), kind


# What a text said of graders that accept more than one form.
LENIENT = re.compile(
    r"\bcolumns?\b[^.|]*\b(?:ignored|not read)\b|\bothers are ignored\b|\b(?:is|are) cut off\b|\bcounts? as the text\b"
    r"|\bfirst one counts\b|\bby (?:their )?(?:place|position)\b|\bmay be left out\b|\bmust lie between 0 and 1\.",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Other columns are ignored.",
        "All six columns must be there; others are ignored.",
        "`Date` and other columns are not read.",
        "Categories are whole numbers (the part behind a decimal point is cut off).",
        "An empty cell counts as the text `nan`.",
        "A cell may list several; the first one counts.",
        "Rows are compared by their position.",
        "Every id must occur exactly once; leading zeros may be left out.",
        "Values must lie between 0 and 1.",
    ],
)
def test_a_lenient_sentence_is_recognised(sentence: str) -> None:
    assert LENIENT.search(sentence)


def test_the_text_speaks_of_no_other_form(corrected: CompetitionCase) -> None:
    section = corrected.competition.description.partition(f"\n{SUBMISSION_HEADING}\n")[2].partition("\n## ")[0]
    assert LENIENT.findall(" ".join(section.split())) == []


def _gold(case: CompetitionCase) -> pd.DataFrame:
    return pd.read_csv(case.competition.gold_submission, dtype=str, na_filter=False)


def _with_predictions_swapped(gold: pd.DataFrame, case: CompetitionCase, dice: random.Random) -> pd.DataFrame:
    """Some rows exchange their predictions, all targets together; an order is shuffled in its row."""
    targets = case.competition.submission["targets"]
    rows = [row for row in range(len(gold)) if dice.random() < 0.4]
    moved = gold.copy()
    if case.config.truth_is_an_order:  # another row's order would be of other things
        moved.loc[rows, targets] = moved.loc[rows, targets].map(lambda order: _shuffled_words(order, dice))
        return moved
    if case.competition.id in MASKS_OF_ONE_IMAGE:
        moved.loc[rows, targets] = moved.loc[rows, targets].map(lambda mask: _without_a_run(mask, dice))
        return moved
    moved.loc[rows, targets] = gold.loc[dice.sample(rows, len(rows)), targets].to_numpy()
    return moved


def _shuffled_words(text: str, dice: random.Random) -> str:
    words = text.split()
    return " ".join(dice.sample(words, len(words)))


def _without_a_run(mask: str, dice: random.Random) -> str:
    numbers = mask.split()
    if not numbers:
        return mask
    start = 2 * dice.randrange(len(numbers) // 2)
    return " ".join(numbers[:start] + numbers[start + 2 :])


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def _score(case: CompetitionCase, submission: pd.DataFrame) -> float:
    score = case.competition.grader.score(read_table(io.BytesIO(_csv(submission)), case.competition), case.answers())
    assert math.isfinite(score)
    return score


def test_a_report_withholds_what_the_profile_withholds_and_names_its_release(
    default_twin: Callable[..., Competition], tmp_path: Path
) -> None:
    competition = default_twin("random-acts-of-pizza", "v2")
    report = grade_csv(competition.gold_submission, competition).to_dict()
    assert report["score"] == 1
    assert {name: report[name] for name in report if "medal" in name} == dict.fromkeys(
        ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "medal_holds")
    )
    assert [report[f"{name}_threshold"] for name in ("gold", "silver", "bronze")] == [None] * 3
    assert (report["board"], report["release"]) == ("same_population", "v2.0rc1")
    (tmp_path / "reports.json").write_text(json.dumps({"competition_reports": [report]}), encoding="utf-8")
    rows = standings_rows(make_standings([tmp_path / "reports.json"]))
    assert {row["mean"] for row in rows if row["figure"] == "any_medal"} == {None}
    assert {row["mean"] for row in rows if row["figure"] == "percentile"} == {100 * report["percentile"]}


def test_profiles_that_share_prepare_have_the_same_test_rows(
    corrected: CompetitionCase, default_twin: Callable[..., Competition]
) -> None:
    later = corrected.competition
    code = later.folder / "v2.py"
    if code.exists() and "\ndef prepare(" in code.read_text(encoding="utf-8"):
        pytest.skip("it has a prepare of its own")
    require_same_tests(default_twin(later.id), later)
