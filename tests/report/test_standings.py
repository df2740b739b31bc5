"""Figures over splits, categories and what is missing; agents compared."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from support.endpoints import call_of, counted

from mlebench.gateway.accounting import FinishedCall
from mlebench.gateway.prices import TokenUsage
from mlebench.report.formats import notes, tables, to_csv
from mlebench.report.standings import Scope, Standings, StandingsOptions, compute_standings
from mlebench.report.types import Entry, RunOutcome
from mlebench.report.usage_totals import usage_figures

SPLITS = {"low": ["a", "b"], "all": ["a", "b", "c"]}
RULES: dict[str, Any] = {"splits": SPLITS, "categories": {"a": "Text", "b": "Image", "c": "Text"}}


def entry(*outcomes: RunOutcome, agent: str = "mine") -> Entry:
    return Entry(agent, ("file",), outcomes)


def won(competition: str, seed: int, **values: Any) -> RunOutcome:
    return RunOutcome(competition, seed, submitted=True, valid=True, above_median=True, bronze=True, **values)


def lost(competition: str, seed: int, **values: Any) -> RunOutcome:
    return RunOutcome(competition, seed, **values)


def made(*entries: Entry, **rules: Any) -> Standings:
    return compute_standings(entries, StandingsOptions(**(RULES | rules)), "v1", "real")


def scopes(found: Standings) -> dict[str, Scope]:
    return {scope.name: scope for scope in found.entries[0].scopes}


def mean(scope: Scope, figure: str = "any_medal") -> float | None:
    found = scope.figures[figure]
    return found.mean if found else None


TWO_SEEDS = entry(won("a", 0), lost("b", 0), won("c", 0), won("a", 1), won("b", 1))


def test_only_complete_seeds_count_and_missing_runs_are_shown() -> None:
    found = scopes(made(TWO_SEEDS))
    low, all = found["low"], found["all"]
    assert (low.seeds, low.seeds_given, low.missing, mean(low)) == (2, 2, 0, 75)
    assert (all.seeds, all.seeds_given, all.missing) == (1, 2, 1)
    assert mean(all) == pytest.approx(200 / 3)
    assert "given" not in found  # it is `all`


def test_missing_runs_are_padded_as_failures_when_asked() -> None:
    all = scopes(made(TWO_SEEDS, pad=True))["all"]
    assert (all.seeds, all.missing) == (2, 1)
    assert mean(all) == pytest.approx(400 / 6)
    assert mean(all, "submitted") == pytest.approx(400 / 6)


def test_without_a_complete_seed_there_are_no_figures() -> None:
    found = made(entry(won("a", 0), won("b", 1), won("c", 0, missing="infra_error")))
    all = scopes(found)["all"]
    assert (all.seeds, all.seeds_given, all.missing) == (0, 2, 4)
    assert set(all.figures.values()) == {None}


def test_a_split_that_was_not_run_is_shown_only_when_asked_for() -> None:
    part = entry(won("a", 0), won("x", 0))
    assert set(scopes(made(part))) == {"given", "Text", "unknown"}
    asked = scopes(made(part, splits={"low": ["a", "b"]}, asked=True))
    assert (asked["low"].seeds, asked["low"].missing) == (0, 1)
    assert set(asked) == {"low", "Text"}


def test_categories() -> None:
    found = scopes(made(TWO_SEEDS))
    assert (mean(found["Image"]), found["Image"].seeds) == (50, 2)
    assert (mean(found["Text"]), found["Text"].seeds, found["Text"].missing) == (100, 1, 1)


def test_each_figure_counts_what_it_names() -> None:
    gold = RunOutcome("a", 0, submitted=True, valid=True, above_median=True, gold=True)
    silver = RunOutcome("b", 0, submitted=True, valid=True, above_median=True, silver=True)
    invalid = RunOutcome("c", 0, submitted=True)
    figures = scopes(made(entry(gold, silver, invalid)))["all"].figures
    thirds = {name: round(3 * found.mean / 100, 9) for name, found in figures.items() if found and name != "normalised"}
    expected = {"any_medal": 2, "gold": 1, "silver": 1, "bronze": 0, "above_median": 2, "valid": 2, "submitted": 3}
    assert thirds == expected


def test_unknown_percentiles_are_left_out_and_scores_below_the_sample_count_as_none() -> None:
    found = scopes(
        made(
            entry(
                won("a", 0, percentile=0.9, normalised=1.5),
                won("b", 0, percentile=0.5, normalised=-30.0),
                won("c", 0),
            )
        )
    )
    percentile, normalised = (found["all"].figures[name] for name in ("percentile", "normalised"))
    assert percentile is not None
    assert normalised is not None
    assert (percentile.mean, percentile.competitions) == (pytest.approx(70), 2)
    assert normalised.mean == 0.5
    assert found["Text"].figures["percentile"] is not None
    assert scopes(made(entry(won("c", 0))))["Text"].figures["percentile"] is None


def test_padding_does_not_make_unknown_figures_known() -> None:
    padded = scopes(made(entry(won("a", 0, percentile=0.9)), pad=True))["all"].figures
    assert padded["normalised"] is None
    assert padded["percentile"] is not None
    assert padded["percentile"].mean == pytest.approx(30)


def test_hours_rerolls_unsealed_runs_and_infra_errors_are_shown() -> None:
    told: dict[str, Any] = {"run_id": "r", "hours": 2.0, "gpu_hours": 1.0, "starts": 1, "rerolls": 0, "sealed": True}
    failed = lost("b", 0, **(told | {"missing": "infra_error", "ended": "infra_error", "hours": None, "sealed": None}))
    found = entry(won("a", 0, **(told | {"starts": 4, "rerolls": 2, "sealed": False})), failed, won("c", 0, **told))
    all = scopes(made(found))["all"].spent
    assert (all.hours, all.gpu_hours, all.starts, all.rerolls) == (4.0, 3.0, 6, 2)
    assert (all.unsealed, all.infra_errors) == (1, 1)
    assert scopes(made(TWO_SEEDS))["all"].spent.hours is None


def used(model: Any) -> dict[str, Any]:
    return {"rerolls": 0, **usage_figures(model)}


def test_calls_tokens_and_cost_are_summed_over_runs_that_report_them(tmp_path: Path) -> None:
    tokens = TokenUsage(input=1000, cached=400, output=20)
    priced = won("a", 0, **used(counted(tmp_path, *[call_of("m", tokens)] * 2)))
    unpriced = won("b", 0, **used(counted(tmp_path, call_of("unpriced", tokens))))
    broken = won("c", 0, **used(None))
    found = made(entry(priced, unpriced, broken))
    spent = scopes(found)["all"].spent
    assert (spent.calls, spent.cost) == (3, pytest.approx(0.24))
    assert spent.tokens == {"input": 3000, "cached": 1200, "output": 60, "reasoning": None}
    assert spent.unknown == {"calls": 1, "tokens": 1, "cost": 2}
    assert tables(found)[0].rows[1][-3:] == ["3 (1 unknown)", "3060 (1 unknown)", "0.24 (2 unknown)"]
    row = next(row for row in csv.DictReader(io.StringIO(to_csv(found))) if row["name"] == "all")
    assert (row["input_tokens"], row["reasoning_tokens"], row["cost_unknown"]) == ("3000", "", "2")

    nothing = made(entry(won("a", 0, **used(None))))
    assert (scopes(nothing)["given"].spent.cost, tables(nothing)[0].rows[0][-3:]) == (None, ["-", "-", "-"])


@pytest.mark.parametrize(
    ("calls", "shown"),
    [
        ([call_of("unpriced", TokenUsage(input=10, output=2))], "unknown"),
        ([call_of("m", TokenUsage())], "unknown"),
        ([call_of("m", TokenUsage()), call_of("m", TokenUsage(input=1000, output=0))], "0.10 (2 unknown)"),
    ],
    ids=["no price", "no usage", "usage of some calls"],
)
def test_an_unknown_cost_is_unknown_and_not_zero(tmp_path: Path, calls: list[FinishedCall], shown: str) -> None:
    without = won("b", 0, **used(counted(tmp_path)))  # it made no call, which cost nothing
    found = made(entry(won("a", 0, **used(counted(tmp_path, *calls))), without, won("c", 0, rerolls=0)))
    assert tables(found)[0].rows[1][-1] == shown, "the third run says nothing"


def test_agents_are_compared_over_the_competitions_that_both_ran() -> None:
    one = entry(*(won(id, seed) for id in "abx" for seed in range(3)))
    other = entry(*(lost(id, seed) for id in "acb" for seed in range(2)), agent="other")
    (found,) = made(one, other).comparisons
    difference = found.differences["any_medal"]
    assert (found.one, found.other, found.scope, found.competitions, found.seeds) == ("mine", "other", "low", 2, (3, 2))
    assert difference is not None
    assert difference.mean == 100
    assert 0 < difference.low < difference.high <= 100
    assert difference.probability > 0.99
    assert found.differences["normalised"] is None


def test_the_first_agent_is_compared_with_each_of_the_others() -> None:
    agents = [entry(won("a", 0), won("b", 0), agent=name) for name in ("one", "two", "three")]
    assert [(one.one, one.other) for one in made(*agents).comparisons] == [("one", "two"), ("one", "three")]
    assert made(agents[0], entry(won("z", 0), agent="elsewhere")).comparisons == []


def test_seeds_needed() -> None:
    other = entry(*(lost(id, seed) for id in "ab" for seed in range(2)), agent="other")
    (alone,) = made(TWO_SEEDS, splits={"low": ["a", "b"]}, asked=True, power=10).needs
    (two,) = made(TWO_SEEDS, other, splits={"low": ["a", "b"]}, asked=True, power=10).needs
    assert (alone.agents, two.agents) == (("mine",), ("mine", "other"))
    assert (alone.seeds or 0) > (two.seeds or 0) > 2
    assert made(TWO_SEEDS).needs == []


def test_withheld_medals_count_in_neither_numerator_nor_denominator() -> None:
    no_medals: dict[str, Any] = {"bronze": None, "silver": None, "gold": None}
    best = RunOutcome("b", 0, above_median=True, **no_medals)
    runs = entry(won("a", 0), best, lost("c", 0), lost("a", 1), lost("b", 1, **no_medals), won("c", 1))
    all = scopes(made(runs))["all"]
    assert (mean(all), all.withheld) == (50, 1)
    assert mean(all, "above_median") == 50  # of all three
    text = "\n".join(notes(made(runs)))
    assert "Medals of up to 1 of 3 competitions are withheld" in text


def test_a_gold_medal_alone_may_be_withheld() -> None:
    runs = entry(won("a", 0, gold=None), won("b", 0))
    low = scopes(made(runs, splits={"low": ["a", "b"]}))["low"]
    assert (mean(low), mean(low, "bronze"), low.withheld) == (100, 100, 0)
    assert low.figures["gold"] is not None
