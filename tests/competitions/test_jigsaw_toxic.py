"""v1 accepts faults in rows that do not count; a refusal must not reveal which fault is in a row that does."""

from pathlib import Path

import pandas as pd
import pytest

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv
from mlebench.registry import Competition, Registry


@pytest.fixture(scope="module")
def competition(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    made = Registry(tmp_path_factory.mktemp("twin")).get_competition("jigsaw-toxic-comment-classification-challenge")
    prepare(made, TwinSource())
    return made


def test_messages_are_about_the_whole_submission(competition: Competition, tmp_path: Path) -> None:
    answers = pd.read_csv(competition.answers)
    counted = (answers["toxic"] >= 0).to_numpy()
    (inside, twin), (outside, other) = counted.nonzero()[0][:2], (~counted).nonzero()[0][:2]
    sample = pd.read_csv(competition.sample_submission).astype(object)

    def verdict(texts: list[int], gaps: list[int], repeated: tuple[int, int] | None = None) -> tuple[str, str | None]:
        table = sample.copy()
        table.loc[texts, "toxic"] = "text"
        table.loc[gaps, "insult"] = None
        if repeated:
            table.loc[repeated[0], "id"] = table.loc[repeated[1], "id"]
        path = tmp_path / "submission.csv"
        table.to_csv(path, index=False)
        report = grade_csv(path, competition)
        return report.status, report.reason

    assert verdict([outside], [other])[0] == "graded"  # the verdict is the reference's
    refused = [
        verdict([inside], [outside]),
        verdict([outside], [inside]),
        verdict([inside], [twin]),
        verdict([inside], []),
        verdict([], [inside]),
    ]
    assert {status for status, _ in refused} == {"invalid"}
    assert len({reason for _, reason in refused}) == 1
    both = [verdict([inside], [], (other, outside)), verdict([outside], [], (inside, outside))]
    assert len(set(both)) == 1
    assert both[0][0] == "invalid"
