"""Twins so large that the unchanged reference can prepare them: it hard-codes sizes of the real data.

They take minutes and gigabytes, so `make test` leaves them out, and `.ci/long` runs them.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.golden_cases import GOLDEN, score_or_verdict

from mlebench.contract import CompetitionCase
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource, remove
from mlebench.registry import Registry

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

FIGURES = json.loads((GOLDEN / "built-in-sizes.json").read_text(encoding="utf-8"))


@pytest.fixture(params=FIGURES)
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CompetitionCase]:
    golden = FIGURES[request.param]
    competition = Registry(tmp_path).get_competition(request.param)
    prepare(competition, TwinSource(golden["seed"], golden["size"]))
    yield CompetitionCase(competition, golden["seed"], golden["size"], golden)
    remove(tmp_path / competition.id)


def test_bytes_and_scores_match_the_reference(large: CompetitionCase, tmp_path: Path) -> None:
    assert large.golden
    found = large.file_hashes
    assert len(found) == large.golden["files"]
    assert hashlib.md5(json.dumps(found, sort_keys=True).encode()).hexdigest() == large.golden["md5"]

    path, scores = tmp_path / "submission.csv", {}
    for name, content in large.submissions.items():
        path.write_bytes(content)
        scores[name] = score_or_verdict(path, large.competition)
    assert scores == large.golden["scores"]
