"""The known issues of the built-in competitions. `defects.csv` lists each fault and the competitions that have it."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from mlebench.config import CompetitionConfig, KnownIssue, has_profile
from mlebench.core.paths import PROFILES
from mlebench.registry import registry

ISSUES: dict[str, tuple[KnownIssue, ...]] = {
    id: CompetitionConfig.load(registry.competition_dir(id)).known_issues for id in registry.list_competition_ids()
}


def test_every_defect_is_a_record_of_its_competitions_and_every_record_a_defect() -> None:
    with Path(__file__).with_name("defects.csv").open(newline="") as lines:
        listed = {(row["id"], row["competition"]) for row in csv.DictReader(lines)}
    assert {(issue.id, competition) for competition, issues in ISSUES.items() for issue in issues} == listed


def test_an_id_has_one_kind() -> None:
    kinds: dict[str | None, set[str | None]] = defaultdict(set)
    for issues in ISSUES.values():
        for issue in issues:
            kinds[issue.id].add(issue.kind)
    assert {id: found for id, found in kinds.items() if len(found) > 1} == {}


def test_leaks_and_contamination_are_known_by_their_ids() -> None:
    """Badges go by the kind."""
    kinds = {"L": "leak", "C": "contamination"}
    every = [issue for issues in ISSUES.values() for issue in issues if issue.id]
    assert {(issue.id, issue.kind) for issue in every if (issue.id or "")[0] in kinds} == {
        (issue.id, kinds[(issue.id or "")[0]]) for issue in every if issue.kind in kinds.values()
    }


@pytest.mark.parametrize("competition", ISSUES)
def test_a_record_says_how_it_is_known_and_names_no_profile_that_its_competition_lacks(competition: str) -> None:
    folder = registry.competition_dir(competition)
    profiles = {None, *(profile for profile in PROFILES if has_profile(folder, profile))}
    assert [issue.id for issue in ISSUES[competition] if not issue.seen or issue.fixed_in not in profiles] == []
