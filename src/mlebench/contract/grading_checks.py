"""Checks of a competition's grader, on submissions that are right and wrong in many ways."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mlebench.contract.case import INVALID, CompetitionCase
from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.paths import CONFIG
from mlebench.scoring import Medals, Thresholds, read_leaderboard
from mlebench.validate.format_check import CheckFailedError, check_format
from mlebench.validate.submission_table import read_table

GOLD, SAMPLE = "gold", "sample"
# What no grader may accept, and what is wrong with it.
FAULTY = {
    "no target column": "has no target column",
    "no id column": "has no id column",
    "row missing": "lacks a row",
    "row too many": "has one row too many",
    "row twice": "has a row twice",
    "id twice": "has an id twice, and lacks another",
    "foreign id": "has an id that is not in the test set",
    "empty id": "has an empty id",
    "header only": "has no rows",
    "empty file": "is an empty file",
    "blank lines": "is a file of blank lines",
    "not utf-8": "is not UTF-8 text",
    "ragged": "has a line with too many cells",
}


def sample(case: CompetitionCase) -> Iterator[str]:
    """The sample submission is valid."""
    if case.verdicts[SAMPLE] == INVALID:
        yield f"the grader refuses the sample submission: {message(case, SAMPLE, case.answers())} Fix one of the two."


def gold(case: CompetitionCase) -> Iterator[str]:
    """The gold submission earns a gold medal, and nothing scores better."""
    best, lower = case.verdicts[GOLD], case.competition.lower_is_better
    if not isinstance(best, float):
        why = message(case, GOLD, case.answers()) if best == INVALID else "its score is not a number."
        yield (
            f"the grader does not accept the gold submission: {why} It is what `dataset.gold_submission` names, or the "
            "answers: let them have the columns of a submission."
        )
        return
    board = Thresholds.of(read_leaderboard(case.competition.leaderboard))
    if not Medals.of(best, board, lower=lower).gold_medal:
        yield f"the gold submission scores {best} and gold takes {board.gold}: is the metric the leaderboard's?"
    for name, score in case.verdicts.items():
        if isinstance(score, float) and (score < best if lower else score > best):
            yield (
                f"the submission {name!r} scores {score}, better than gold with {best}: is `higher_is_better` right, "
                "and is the gold submission the truth?"
            )


def faults(case: CompetitionCase) -> Iterator[str]:
    """Faulty submissions are refused."""
    accepted = [name for name in FAULTY if case.verdicts[name] != INVALID]
    for name in accepted:
        if name not in case.config.accepts:
            yield f"the grader accepts a submission that {FAULTY[name]}: `kit.align` checks columns, rows and ids."
    for name in case.config.accepts:
        if name not in FAULTY:
            yield f"`contract.accepts` in {CONFIG} names {name!r}, which is none of {', '.join(FAULTY)}."


def row_order(case: CompetitionCase) -> Iterator[str]:
    """The order of rows does not change a score."""
    for name in ("gold", "noisy", "blend"):
        pair = case.verdicts.get(name), case.verdicts.get(f"{name}, shuffled")
        if INVALID not in pair and pair[0] != pair[1] and not case.config.order_counts:
            yield (
                f"the submission {name!r} scores {pair[0]}, but shuffled {pair[1]}: join the submission with "
                "the answers by id, as `kit.align` does."
            )


def format_check(case: CompetitionCase) -> Iterator[str]:
    """`mlebench validate`, which has no answers, accepts correct submissions and nothing that the grader refuses."""
    for name, content in case.submissions.items():
        try:
            valid, why = check_format(io.BytesIO(content), case.competition)
        except CheckFailedError as error:
            fault = f"the format check fails on {name!r} ({error.__cause__})"
            yield f"{fault}: does `stand_in` have the columns of the answers?"
            return
        if valid and case.verdicts[name] == INVALID:
            yield (
                f"`mlebench validate` accepts {name!r}, which the grader refuses: "
                f"{message(case, name, case.answers())} Let `stand_in` be more like the answers."
            )
        excused = name == GOLD and case.config.secret_ids
        if not valid and name in (SAMPLE, GOLD) and not excused:
            yield f"`mlebench validate` refuses the {name} submission: {why} Let `stand_in` have the ids of the sample."


def messages(case: CompetitionCase) -> Iterator[str]:
    """Error messages do not depend on the truth."""
    answers = case.answers()
    permuted = _permuted(case, answers)
    for name in case.submissions:
        said = message(case, name, answers), message(case, name, permuted)
        if said[0] != said[1]:
            yield (
                f"the message on {name!r} reveals something about the answers: it is {said[0]!r}, and {said[1]!r} when "
                "true values of rows change places. Let it mention the submission only."
            )


def message(case: CompetitionCase, name: str, answers: Any) -> str | None:
    """Why a submission is refused; None if it is not."""
    try:
        case.competition.grader.grade_fn(read_table(io.BytesIO(case.submissions[name]), case.competition), answers)
    except InvalidSubmissionError as error:
        return str(error)
    return None


def as_table(answers: Any) -> pd.DataFrame:
    """Answers as a table; those in JSON lines are a list of records."""
    return pd.DataFrame(answers) if isinstance(answers, list) else answers


def _permuted(case: CompetitionCase, answers: Any) -> Any:
    """Answers in which the truth of the rows that count is shuffled."""
    table = as_table(answers)
    truth = table.loc[:, case.truth]
    source = np.arange(len(truth))
    rows = np.flatnonzero((truth >= 0).all(axis=1)) if case.config.uncounted_rows else source
    source[rows] = np.random.RandomState(3).permutation(rows)
    if case.config.truth_is_an_order:
        moved = table.assign(**{name: truth[name].map(lambda text: " ".join(reversed(text.split()))) for name in truth})
    else:
        moved = table.assign(**{name: truth[name].to_numpy()[source] for name in truth})
    return moved.to_dict("records") if isinstance(answers, list) else moved
