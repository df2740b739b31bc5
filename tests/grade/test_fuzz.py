"""Mutated submissions through the batch: each gets a verdict, in time, whatever it is."""

import json
from pathlib import Path

import pytest
from support.mutations import COUNT, mutations

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import GradingLimits, grade_jsonl
from mlebench.registry import Registry


# A table, texts, boxes in texts, and run lengths: where graders read cells themselves.
@pytest.mark.timeout(300 + 10 * COUNT)
@pytest.mark.parametrize(
    "id",
    [
        "spooky-author-identification",
        "tweet-sentiment-extraction",
        "kuzushiji-recognition",
        "tgs-salt-identification-challenge",
    ],
)
def test_mutated_submissions_are_graded_or_invalid_within_a_minute(id: str, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "data")
    competition = registry.get_competition(id)
    prepare(competition, TwinSource())
    names, lines = [], []
    for number, (name, content) in enumerate(mutations(competition, f"batch of {id}")):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content)
        names.append(name)
        lines.append(json.dumps({"competition_id": id, "submission_path": str(path)}))
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    limits = GradingLimits(seconds=60, memory=2_000_000_000)
    summary = grade_jsonl(tmp_path / "s.jsonl", tmp_path / "out", registry, jobs=2, limits=limits)
    assert summary["unjudged"] == []
    ends = {name: report["status"] for name, report in zip(names, summary["competition_reports"], strict=True)}
    assert {name: end for name, end in ends.items() if end not in ("graded", "invalid")} == {}
    assert "invalid" in ends.values()
