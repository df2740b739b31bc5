"""A release of a profile says what it is: data and scores of a competition do not change under the same version."""

import json

import pytest
from golden.record_release import entry_of

from mlebench.config import RELEASES
from mlebench.contract import CompetitionCase
from mlebench.core.paths import profiles_dir
from mlebench.registry import Registry

RECORD = "record it with `python tests/golden/record_release.py"


def _released() -> dict[str, dict[str, object]]:
    return json.loads((profiles_dir() / f"{RELEASES['v2']}.json").read_text(encoding="utf-8"))["competitions"]


def test_a_release_has_every_competition_of_its_profile() -> None:
    assert [*_released()] == Registry(profile="v2").list_competition_ids(), f"{RECORD}`"


@pytest.mark.bytes
def test_data_and_scores_are_those_of_the_release(corrected: CompetitionCase) -> None:
    id = corrected.competition.id
    assert entry_of(corrected) == _released()[id], f"raise `version` under `v2` in config.yaml, and {RECORD} {id}`"


def test_what_was_prepared_from_real_data_is_no_longer_checked_on_twins_only() -> None:
    registry = Registry(profile="v2")
    competitions = [registry.get_competition(id) for id in registry.list_competition_ids()]
    published = {competition.id for competition in competitions if competition.checksums.is_file()}
    assert published
    assert {competition.id for competition in competitions if competition.checked_on == "real data"} == published
