"""From inputs to standings, with what the registry knows about competitions."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.records.conditions import unlike, unlike_text
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.inputs import Inputs, one_kind
from mlebench.report.published import published_entries
from mlebench.report.standings import Standings, StandingsOptions, standings
from mlebench.report.types import SPLITS, TWIN, Entry


def make_standings(
    inputs: Inputs | Iterable[Group | Path | str],
    split: str | None = None,
    *,
    pad: bool = False,
    power: float | None = None,
    published: bool = False,
    strict: bool = False,
) -> Standings:
    """Return the standings over run groups, bundles and grading reports, which `mlebench report` shows.

    `split` limits them to the competitions of a split, `pad` counts missing runs as failures, and `power` is a
    difference in percentage points for which the seeds needed are computed. `published` adds the published leaderboard,
    which is of real data and profile v1; `strict` refuses to compare or pool runs under unlike conditions.

    Raises PrerequisiteError for inputs that cannot be read, hold no runs, or may not be in one table.
    """
    inputs = inputs if isinstance(inputs, Inputs) else _collected(inputs)
    reported_runs = inputs.reported_runs()
    if not reported_runs:
        raise PrerequisiteError("the given inputs hold no runs")
    profile, data = one_kind(reported_runs)
    if published and (data == TWIN or profile != "v1"):
        raise PrerequisiteError("published figures are of real data and profile v1: they are not shown beside others")
    registry = Registry(profile=profile)
    boards = CompetitionLookup(registry)
    entries = inputs.entries(boards)
    if strict:
        _refuse_unlike(entries)
    options = StandingsOptions(
        splits={name: registry.get_split(name) for name in ([split] if split else SPLITS)},
        categories={id: boards.category(id) for entry in entries for id in entry.competitions},
        pad=pad,
        asked=split is not None,
        power=power,
    )
    return standings(entries, options, profile, data, published_entries() if published else ())


def _collected(inputs: Iterable[Group | Path | str]) -> Inputs:
    collected = Inputs(paths.default_runs_dir(paths.default_data_dir()))
    for source in inputs:
        collected.add(source)
    return collected


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
