"""`report --without`: standings counted again without competitions that have badges."""

import csv
import io
import json
import random
from collections.abc import Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from support.grading_reports import report, write_reports

from mlebench.cli import main
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import competitions_dir, splits_dir
from mlebench.records.report import BADGES, Badge
from mlebench.report import make_standings, recount
from mlebench.report.intervals import Estimate, MeanDifference, Sample
from mlebench.report.standings import Scope, Standings, StandingsOptions, compute_standings
from mlebench.report.types import Entry, RunOutcome

ELSEWHERE = "a-competition-of-others"  # nothing is known about it here
LOW = (splits_dir() / "low.txt").read_text(encoding="utf-8").split()
# Some that the random sets draw from: with leaks, with contamination, with both and with neither.
POOL = [
    *("random-acts-of-pizza", "siim-isic-melanoma-classification", "jigsaw-toxic-comment-classification-challenge"),
    *("champs-scalar-coupling", "dog-breed-identification", "spooky-author-identification", "mlsp-2013-birds"),
    *("nomad2018-predict-transparent-conductors", "leaf-classification", "tabular-playground-series-may-2022"),
    ELSEWHERE,
]


class Drawn(NamedTuple):
    """The reports of an agent, by seed and competition."""

    agent: str
    reports: dict[tuple[int, str], dict[str, Any]]

    @property
    def competitions(self) -> set[str]:
        return {competition for _, competition in self.reports}


@cache
def facts_of(competition: str) -> dict[str, Any]:
    path = competitions_dir() / competition / "config.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}


def draw(random_: random.Random) -> list[Drawn]:
    """Two or three agents with reports of random competitions; some of them ended with infrastructure errors."""
    whole_split = random_.random() < 0.3
    agents = []
    for agent in ("one", "two", "three")[: random_.choice([2, 2, 3])]:
        competitions = LOW if whole_split else random_.sample(POOL, random_.randint(5, len(POOL)))
        skill, reports = random_.random(), {}
        for seed in range(random_.randint(1, 3)):
            for competition in competitions:
                if random_.random() < 0.04:
                    continue  # a run that was not started
                reports[seed, competition] = draw_report(random_, competition, seed, skill)
        agents.append(Drawn(agent, reports))
    return agents


def draw_report(random_: random.Random, competition: str, seed: int, skill: float) -> dict[str, Any]:
    if random_.random() < 0.03:
        return report(competition, seed=seed, status="infra_error", score=None)
    medal = random_.choice(["gold", "silver", "bronze"]) if random_.random() < skill else None
    values: dict[str, Any] = {"seed": seed, "status": "graded", "source": "real"}
    if random_.random() < 0.5:
        values["test_units"] = random_.choice([30, 99, 100, 5000, 5000, 5000, 5000])
    if medal and random_.random() < 0.3:
        values["medal_holds"] = random_.choice([0.5, 0.7975, 0.8, 1.0, 1.0])
    if competition == ELSEWHERE and random_.random() < 0.5:
        values["badges"] = "leak L99"
    return report(competition, medal, **values)


def badges_by_hand(drawn: dict[str, Any]) -> set[tuple[str, str]]:
    """The kind and label of each badge of a report."""
    if drawn["score"] is None:
        return set()
    if drawn["competition_id"] == ELSEWHERE:
        return {("leak", "L99")} if "badges" in drawn else set()
    badges = issues_by_hand(drawn["competition_id"])
    if drawn.get("test_units", 100) < 100 or drawn.get("medal_holds", 1) < 0.8:
        badges.add(("low_power", "low_power"))
    return badges


def issues_by_hand(competition: str) -> set[tuple[str, str]]:
    issues = facts_of(competition).get("known_issues", [])
    return {(issue["kind"], issue["id"]) for issue in issues if issue["kind"] in ("leak", "contamination")}


def left_out_by_hand(agents: Sequence[Drawn], shown: set[str], without: Sequence[str]) -> dict[str, set[str]]:
    badges = {competition: issues_by_hand(competition) for competition in shown}
    for agent in agents:
        for (_, competition), drawn in agent.reports.items():
            if competition in shown:
                badges[competition] |= badges_by_hand(drawn)
    labels = {id: {label for kind, label in found if kind in without} for id, found in badges.items()}
    return {id: found for id, found in labels.items() if found}


def table_by_hand(
    agent: Drawn, ids: set[str], *, pad: bool
) -> tuple[list[int], int, list[list[dict[str, Any] | None]]]:
    """The seeds given, how many runs are missing, and a row of reports for each seed that counts."""
    ordered = sorted(ids)
    seeds = sorted({seed for seed, competition in agent.reports if competition in ids})
    rows = []
    for seed in seeds:
        row = [agent.reports.get((seed, competition)) for competition in ordered]
        rows.append([None if one is None or one["status"] == "infra_error" else one for one in row])
    missing = sum(one is None for row in rows for one in row)
    return seeds, missing, [row for row in rows if pad or all(row)]


def values_by_hand(rows: list[list[dict[str, Any] | None]], figure: str) -> np.ndarray:
    key = {"valid": "valid_submission", "submitted": "submission_exists"}.get(figure, figure)
    key = f"{figure}_medal" if figure in ("gold", "silver", "bronze") else key
    return np.array([[float(bool(one and one[key])) for one in row] for row in rows]).T


def ids_of(scope: Scope, ran: set[str]) -> set[str]:
    if scope.kind == "split":
        return set((splits_dir() / f"{scope.name}.txt").read_text(encoding="utf-8").split())
    if scope.kind == "given":
        return ran
    return {id for id in ran if facts_of(id).get("category", "unknown") == scope.name}


def check_scope(scope: Scope, agent: Drawn, counted: set[str], *, pad: bool) -> None:
    ids = ids_of(scope, agent.competitions) & counted
    seeds, missing, rows = table_by_hand(agent, ids, pad=pad)
    assert (scope.competitions, scope.seeds_given, scope.seeds) == (len(ids), len(seeds), len(rows))
    assert scope.missing == missing
    medals = [one for row in rows for one in row if one and one["any_medal"]]
    assert (scope.medals, scope.badged) == (len(medals), sum(bool(badges_by_hand(one)) for one in medals))
    for figure in ("any_medal", "gold", "silver", "bronze", "above_median", "valid", "submitted"):
        estimate = scope.figures[figure]
        if not rows:
            assert estimate is None
            continue
        values = values_by_hand(rows, figure)
        assert estimate is not None
        assert estimate.mean == pytest.approx(100 * sum(map(sum, values)) / (len(ids) * len(rows)))
        assert astuple(estimate) == pytest.approx(astuple(Estimate.of(values).scaled(100)))


def check_comparisons(standings: Standings, agents: Sequence[Drawn], counted: set[str], *, pad: bool) -> None:
    first = agents[0]
    for comparison in standings.comparisons:
        other = next(agent for agent in agents if agent.agent == comparison.other)
        common = first.competitions & other.competitions
        assert comparison.scope in ("given", "low")
        ids = counted & (set(LOW) if pad else common)
        (_, _, mine), (_, _, theirs) = (table_by_hand(agent, ids, pad=pad) for agent in (first, other))
        assert (comparison.competitions, comparison.seeds) == (len(ids), (len(mine), len(theirs)))
        difference = comparison.differences["any_medal"]
        if not (mine and theirs):
            assert difference is None
            continue
        samples = [Sample.of(values_by_hand(rows, "any_medal")) for rows in (mine, theirs)]
        assert difference is not None
        assert astuple(difference) == pytest.approx(astuple(MeanDifference.of(*samples).scaled(100)))


@pytest.mark.parametrize("seed", range(16))
def test_both_counts_are_those_of_an_independent_calculation(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    agents = draw(random_)
    without = random_.sample(BADGES, random_.randint(1, 3))
    pad = random_.random() < 0.4
    files = [
        f"{agent.agent}={write_reports(tmp_path / agent.agent / 'report.json', list(agent.reports.values()))}"
        for agent in agents
    ]
    asked = "low" if pad or agents[0].competitions == set(LOW) else None
    shown = set(LOW) if asked else {id for agent in agents for id in agent.competitions}
    left_out = left_out_by_hand(agents, shown, without)
    if left_out.keys() == shown:
        with pytest.raises(PrerequisiteError, match="nothing is left"):
            make_standings(files, asked, pad=pad, without=without)
        return
    standings = make_standings(files, asked, pad=pad, without=without)
    assert standings.recount is not None
    found = {one.competition: {badge.label for badge in one.badges} for one in standings.recount.left_out}
    assert found == left_out
    for counted, ids in ((standings, shown), (standings.recount.standings, shown - left_out.keys())):
        for agent, row in zip(agents, counted.entries, strict=True):
            assert row.scopes or not agent.competitions & ids
            for scope in row.scopes:
                check_scope(scope, agent, ids, pad=pad)
        check_comparisons(counted, agents, ids, pad=pad)


def outcome(competition: str, seed: int = 0, *badges: Badge, medal: bool = True, **values: Any) -> RunOutcome:
    return RunOutcome(competition, seed, submitted=True, valid=True, gold=medal, badges=badges, **values)


def made(*entries: Entry, **options: Any) -> Standings:
    rules: dict[str, Any] = {"splits": {"low": ["a", "b"]}, "categories": {}}
    return compute_standings(entries, StandingsOptions(**rules | options), "v1", "real")


LEAK = Badge(kind="leak", issue="L1", text="may have had help from L1")
CHANCE = Badge(kind="low_power", text="may be chance")


def test_a_badge_of_one_entry_leaves_the_competition_out_of_all() -> None:
    one = Entry("one", ("x",), (outcome("a", 0, LEAK), outcome("b")))
    two = Entry("two", ("y",), (outcome("a"), outcome("b", medal=False)))
    recounted = recount(made(one, two), ["leak"])
    assert [left.competition for left in recounted.left_out] == ["a"]
    assert [scope.competitions for row in recounted.standings.entries for scope in row.scopes[:1]] == [1, 1]
    (comparison,) = recounted.standings.comparisons
    assert (comparison.scope, comparison.competitions) == ("low", 1)


def test_a_seed_counts_once_the_competition_that_it_lacked_is_left_out() -> None:
    runs = [outcome("a", 0, LEAK), outcome("b", 0), outcome("b", 1, medal=False)]
    standings = made(Entry("one", ("x",), tuple(runs)))
    (before, *_), (after, *_) = standings.entries[0].scopes, recount(standings, ["leak"]).standings.entries[0].scopes
    assert (before.seeds, before.seeds_given) == (1, 2)
    assert (after.seeds, after.seeds_given) == (2, 2)
    assert after.figures["any_medal"] is not None
    assert after.figures["any_medal"].mean == 50


def test_a_recount_shows_no_split_that_the_standings_do_not_show() -> None:
    runs = Entry("one", ("x",), (outcome("b"), outcome("c")))
    standings = made(runs, splits={"low": ["a", "b", "c"]})
    leaky = Entry("two", ("y",), (outcome("a", 0, LEAK), outcome("b"), outcome("c")))
    both = made(runs, leaky, splits={"low": ["a", "b", "c"]})
    assert [scope.name for scope in standings.entries[0].scopes] == ["given", "unknown"]
    assert [scope.name for scope in recount(both, ["leak"]).standings.entries[0].scopes] == ["given", "unknown"]


def test_competitions_of_unknown_size_are_named() -> None:
    runs = (outcome("a", 0, CHANCE, test_units=20), outcome("b"), outcome("c", test_units=500))
    assert recount(made(Entry("one", ("x",), runs)), ["low_power"]).unsized == ["b"]
    assert recount(made(Entry("one", ("x",), (outcome("a"), outcome("b")))), ["leak"]).unsized == []


def test_nothing_left_and_unknown_badges_are_refused() -> None:
    standings = made(Entry("one", ("x",), (outcome("a", 0, LEAK),)))
    with pytest.raises(PrerequisiteError, match="nothing is left"):
        recount(standings, ["leak"])
    with pytest.raises(PrerequisiteError, match="there are no badges leek"):
        recount(standings, ["leek"])


@pytest.fixture
def old_reports(tmp_path: Path) -> list[str]:
    """Two agents on the split low, as the reference writes reports."""
    files = [
        write_reports(
            tmp_path / f"{name}.json", [report(id, "gold" if wins(place) else None) for place, id in enumerate(LOW)]
        )
        for name, wins in (("one", lambda place: place % 2), ("two", lambda place: place % 3))
    ]
    return [f"{path.stem}={path}" for path in files]


def test_every_format_shows_both_figures_and_what_is_left_out(
    old_reports: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def call(*arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main(["report", *old_reports, "--without", "contamination,leak", *arguments])
        streams = capsys.readouterr()
        assert not end.value.code, streams.err
        return streams.out, streams.err

    data = json.loads(call("--format", "json")[0])
    again = data["recount"]
    assert again["without"] == ["leak", "contamination"]
    assert "spooky-author-identification" in {one["competition"] for one in again["left_out"]}
    remaining = 22 - len(again["left_out"])
    with_, without = (part["entries"][0]["scopes"][0] for part in (data, again))
    assert (with_["competitions"], without["competitions"]) == (22, remaining)

    rows = list(csv.DictReader(io.StringIO(call("--format", "csv")[0])))
    (row,) = [
        row
        for row in rows
        if (row["agent"], row["kind"], row["figure"], row["without"])
        == ("one", "split", "any_medal", "leak,contamination")
    ]
    assert float(row["mean"]) == without["figures"]["any_medal"]["mean"]
    assert {row["name"] for row in rows if row["kind"] == "left_out"} == {
        one["competition"] for one in again["left_out"]
    }

    table, err = call()
    text = call("--format", "md")[0]
    for shown in (table, text):
        assert "low without leak, contamination" in shown
        assert "L6 (leak)" in shown
        assert f"{without['figures']['any_medal']['mean']:.2f}" in shown
        assert f"{with_['figures']['any_medal']['mean']:.2f}" in shown
    assert f"{len(again['left_out'])} competitions count for no entry" in err

    call("--format", "html", "-o", str(tmp_path / "pages"))
    page = json.loads((tmp_path / "pages" / "index.json").read_text(encoding="utf-8"))
    shown_rows = {(row["entry"], row["name"]): row["competitions"] for row in page["rows"] if row["kind"] == "split"}
    assert shown_rows["one", "low"] == 22
    assert shown_rows["one", "low without leak, contamination"] == remaining
    assert [one["competition"] for one in page["left_out"]] == [one["competition"] for one in again["left_out"]]


def test_a_badge_that_does_not_exist_is_refused(old_reports: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, said in (("leek", "did you mean leak?"), ("", "choose from leak, contamination, low_power")):
        with pytest.raises(SystemExit) as end:
            main(["report", *old_reports, "--without", wrong])
        assert end.value.code == 2
        assert said in capsys.readouterr().err
