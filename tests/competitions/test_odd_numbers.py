"""Numbers too large to reckon with are a fault of the submission, and both checks say so; the reference crashed."""

from pathlib import Path

import pytest

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv, validate_format
from mlebench.kit import public_sample
from mlebench.registry import Registry

HUGE = "9" * 400  # no float holds it; pandas makes it one of Python's whole numbers


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("jigsaw-toxic-comment-classification-challenge", HUGE),
        ("jigsaw-unintended-bias-in-toxicity-classification", HUGE),
        ("stanford-covid-vaccine", HUGE),
        ("ventilator-pressure-prediction", HUGE),
        ("predict-volcanic-eruptions-ingv-oe", "1e308"),  # the sum is infinite
    ],
)
def test_huge_numbers_are_the_submissions_fault(name: str, cell: str, tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition(name)
    prepare(competition, TwinSource())
    path = tmp_path / "submission.csv"
    huge = dict.fromkeys(competition.submission["targets"], cell)
    public_sample(competition).assign(**huge).to_csv(path, index=False)
    assert grade_csv(path, competition).status == "invalid"
    assert not validate_format(path, competition)[0]
