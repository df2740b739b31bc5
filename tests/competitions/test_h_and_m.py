"""h-and-m under both profiles: what a refusal says about customers, how articles are written, the days for testing.

No cheater can show the first: it takes many gradings, and a cheater sees public files alone.
"""

import csv
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from mlebench.grade import grade_csv
from mlebench.kit import open_raw, public_sample
from mlebench.registry import Competition

ID = "h-and-m-personalized-fashion-recommendations"

pytestmark = pytest.mark.xdist_group(ID)


@pytest.mark.parametrize(("profile", "says_who_counts"), [("v1", True), ("v2", False)])
def test_a_refusal_says_who_counts_under_v1_only(
    profile: str, says_who_counts: bool, default_twin: Callable[..., Competition], tmp_path: Path
) -> None:
    competition = default_twin(ID, profile)
    sample, path = public_sample(competition), tmp_path / "submission.csv"
    counts = sample["customer_id"].isin(pd.read_csv(competition.answers)["customer_id"]).to_numpy()
    assert 0 < counts.sum() < len(counts)

    def status_without(row: int) -> str:
        sample.drop(index=row).to_csv(path, index=False)
        return grade_csv(path, competition).status

    statuses = {bool(counted): status_without(int(row)) for row, counted in enumerate(counts)}
    assert (statuses[True] != statuses[False]) is says_who_counts


def test_articles_are_written_alike_in_all_files_of_v2(default_twin: Callable[..., Competition]) -> None:
    competition = default_twin(ID, "v2")
    articles = {*_column(competition.public_dir / "articles.csv", "article_id")}
    assert any(article.startswith("0") for article in articles)
    assert {*_column(competition.public_dir / "transactions_train.csv", "article_id")} <= articles
    bought = [text.split() for text in _column(competition.answers, "prediction")]
    assert {article for texts in bought for article in texts} <= articles
    assert all(len(texts) == len({*texts}) for texts in bought)


@pytest.mark.parametrize(("profile", "days"), [("v1", 8), ("v2", 7)])
def test_days_for_testing(profile: str, days: int, default_twin: Callable[..., Competition]) -> None:
    competition = default_twin(ID, profile)
    last_public_day = max(_column(competition.public_dir / "transactions_train.csv", "t_dat"))
    with open_raw(competition.raw_dir) as raw:
        last_day = max(raw.table("transactions_train.csv")["t_dat"])
    assert (date.fromisoformat(last_day) - date.fromisoformat(last_public_day)).days == days


def _column(path: Path, name: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as lines:
        return [row[name] for row in csv.DictReader(lines)]
