"""From inputs to standings, with what the registry knows about competitions."""

from collections.abc import Sequence

from mlebench.core.errors import PrerequisiteError
from mlebench.records.conditions import unlike, unlike_text
from mlebench.registry import Registry
from mlebench.report.boards import Boards
from mlebench.report.inputs import Inputs, one_kind
from mlebench.report.model import SPLITS, TWIN, Entry
from mlebench.report.published import published_entries
from mlebench.report.standings import Rules, Standings, standings


def make_standings(
    inputs: Inputs,
    split: str | None = None,
    *,
    pad: bool = False,
    power: float | None = None,
    published: bool = False,
    strict: bool = False,
) -> Standings:
    """`published` adds the published leaderboard, which used real data and profile v1; `strict` refuses to compare or
    pool runs under unlike conditions."""
    readings = inputs.readings()
    if not readings:
        raise PrerequisiteError("the given inputs hold no runs")
    profile, data = one_kind(readings)
    if published and (data == TWIN or profile != "v1"):
        raise PrerequisiteError("published figures are of real data and profile v1: they are not shown beside others")
    registry = Registry(profile=profile)
    boards = Boards(registry)
    entries = inputs.entries(boards)
    if strict:
        _refuse_unlike(entries)
    rules = Rules(
        splits={name: registry.get_split(name) for name in ([split] if split else SPLITS)},
        categories={id: boards.category(id) for entry in entries for id in entry.competitions},
        pad=pad,
        asked=split is not None,
        power=power,
    )
    return standings(entries, rules, profile, data, published_entries() if published else ())


def _refuse_unlike(entries: Sequence[Entry]) -> None:
    first = entries[0]
    for entry in entries:
        if apart := unlike(first.conditions, entry.conditions):
            raise PrerequisiteError(
                f"--strict: {first.agent} and {entry.agent} were run under unlike conditions: {unlike_text(apart)}"
            )
        if pooled := entry.conditions.pooled_text:
            raise PrerequisiteError(
                f"--strict: the runs of {entry.agent} are pooled over {pooled}: report on them separately"
            )
