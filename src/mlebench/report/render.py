"""Renders standings as tables for people, markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from mlebench import __version__
from mlebench.report.found import Found
from mlebench.report.intervals import LEVEL, Difference, Estimate
from mlebench.report.model import TWIN, Entry
from mlebench.report.spent import TOKENS, Spent
from mlebench.report.standings import RATES, SCALES, EntryStandings, Scope, Standings
from mlebench.run.knowledge import shown
from mlebench.untrusted import plain

SCHEMA = 1
COUNTED = ("competitions", "seeds", "seeds_given", "missing")
LIMITED = ("mean", "sem", "low", "high")
FOUND = ("runs", "of", "not_inspected", "not_enough_evidence", "trust")
LIMITS = f"{LEVEL:.0%} interval"
KNOWLEDGE = "--knowledge"
_COUNTS = ("hours", "gpu_hours", "starts", "rerolls", "unsealed", "infra_errors", "model_unavailable")


class Table(NamedTuple):
    title: str
    header: Sequence[str]
    rows: list[list[str]]


def tables(standings: Standings) -> list[Table]:
    """What people read. Tables without rows are left out."""
    found = [
        _standings_table(standings),
        _category_table(standings),
        _found_table(standings),
        *_extra_tables(standings),
    ]
    return [table for table in found if table.rows]


def notes(standings: Standings) -> list[str]:
    """What a reader must know to read the figures."""
    rule = (
        "missing runs count as failures (--pad-missing)"
        if standings.padded
        else "only seeds with a run of every competition count (--pad-missing counts missing runs as failures)"
    )
    lines = [
        f"Rates are percentages: mean ± standard error over seeds, and a {LIMITS} for new seeds on the same "
        f"competitions; {rule}."
    ]
    if standings.data == TWIN:
        lines.append("Twins are synthetic: these figures say nothing about real data.")
    if standings.profile != "v1":
        lines.append(f"The profile is {standings.profile}; published figures are for v1.")
    lines += _conditions([found.entry for found in standings.entries])
    scopes = [scope for found in standings.entries for scope in found.scopes]
    if any(scope.spent.model_unavailable for scope in scopes):
        lines.append(
            "Some runs had no model, through no fault of their agent, and count as missing: `mlebench runs list` shows "
            "why, and `mlebench run --resume GROUP --retry infra` repeats them."
        )
    if any(scope.spent.unsealed for scope in scopes):
        lines.append("Some runs were not sealed: `mlebench runs show` says why.")
    if standings.published:
        lines.append("Published entries are other people's figures, as the benchmark's leaderboard states them.")
    return lines


def _conditions(entries: Sequence[Entry]) -> Iterator[str]:
    """What agents had to read and, for entries of the same name, how they differ."""
    for entry in entries:
        told = _told(entry)
        others = [_told(other) for other in entries if other.name == entry.name]
        differing = [what for what, value in told.items() if any(other[what] != value for other in others)]
        if telling := [
            what for what in told if what in differing or (what == KNOWLEDGE and told[what] not in ("none", "unknown"))
        ]:
            yield f"{entry.agent}: {', '.join(f'{what} {told[what]}' for what in telling)}."


def _told(entry: Entry) -> dict[str, str]:
    facts = entry.conditions
    folder = facts.get("knowledge")
    nothing = "none" if facts else "unknown"  # bare reports state no conditions
    told = {
        "agent": facts.get("agent") or "unknown",
        "identity": str(facts.get("identity") or "unknown")[:12],
        "time limit": time_limit(entry.hours_limit),
        "model": entry.model or nothing,
        "budget": facts.get("budget") or nothing,
        **{what: ", ".join(map(str, facts.get(what) or ())) or nothing for what in ("tools", "fields")},
        **{what: facts.get(what, "unknown") for what in ("network", "description")},
        **{what: _count(facts.get(what)) for what in ("cpus", "gpus")},
        KNOWLEDGE: shown(folder, facts.get("knowledge_sha256")) if folder else nothing,
    }
    return {what: plain(str(value)) for what, value in told.items()}


def time_limit(hours: float | None) -> str:
    if hours is None:
        return "unknown"
    return f"{hours:.3g} h" if hours >= 1 else f"{hours * 60:.3g} min"


def _count(number: float | None) -> str:
    return "unknown" if number is None else f"{number:g}"


def _standings_table(standings: Standings) -> Table:
    header = ["agent", "split", "competitions", "seeds", "missing", "any medal", LIMITS, "gold", "silver", "bronze"]
    header += ["above median", "valid", "submitted", "percentile", "normalised"]
    header += ["hours", "GPU hours", "starts", "re-rolls", "unsealed", "infra errors", "calls", "tokens", "cost, $"]
    rows = [
        [*_place(found, scope), *_medals(scope), *_means(scope), *_spent(scope)]
        for found, scope in _scopes(standings, "split", "given")
    ]
    return Table("Standings", header, rows)


def _category_table(standings: Standings) -> Table:
    header = ["agent", "category", "competitions", "seeds", "missing", "any medal", LIMITS]
    rows = [[*_place(found, scope), *_medals(scope)] for found, scope in _scopes(standings, "category")]
    return Table("By category", header, rows)


def _found_table(standings: Standings) -> Table:
    header = ["agent", "tool", "finding", "runs", "of", "share, %", "not inspected", "trust"]
    rows = [
        [found.entry.agent, one.tool, one.finding, *map(str, (one.runs, one.of)), _number(one.share, 1), *_doubts(one)]
        for found in standings.entries
        for one in found.found
    ]
    return Table("Findings", header, rows)


def _doubts(found: Found) -> list[str]:
    unsure = f"; not enough evidence in {found.not_enough_evidence}" if found.not_enough_evidence else ""
    return [str(found.not_inspected), f"{found.trust or '-'}{unsure}"]


def _scopes(standings: Standings, *kinds: str) -> Iterator[tuple[EntryStandings, Scope]]:
    for found in standings.entries:
        yield from ((found, scope) for scope in found.scopes if scope.kind in kinds)


def _place(found: EntryStandings, scope: Scope) -> list[str]:
    seeds = str(scope.seeds) if scope.seeds == scope.seeds_given else f"{scope.seeds} of {scope.seeds_given}"
    return [found.entry.agent, scope.name, str(scope.competitions), seeds, str(scope.missing)]


def _medals(scope: Scope) -> list[str]:
    medals = scope.figures["any_medal"]
    return [_mean(medals), _interval(medals)]


def _means(scope: Scope) -> list[str]:
    means = {name: found.mean if found else None for name, found in scope.figures.items() if name != "any_medal"}
    return [_number(mean, 3 if name == "normalised" else 2) for name, mean in means.items()]


def _spent(scope: Scope) -> list[str]:
    spent = scope.spent
    used = {"calls": (spent.calls, 0), "tokens": (spent.all_tokens, 0), "cost": (spent.cost, 2)}
    return [
        _number(spent.hours, 2),
        _number(spent.gpu_hours, 2),
        *(_number(count, 0) for count in (spent.starts, spent.rerolls, spent.unsealed, spent.infra_errors)),
        *(total(value, places, (spent.unknown or {}).get(name), spent.calls) for name, (value, places) in used.items()),
    ]


def total(value: float | None, places: int, unknown: int | None, calls: float | None) -> str:
    """A sum over runs. Nothing known of calls that were made is unknown, not zero."""
    if not value and unknown and calls:
        return "unknown"
    return _number(value, places) + (f" ({unknown} unknown)" if value is not None and unknown else "")


def _extra_tables(standings: Standings) -> list[Table]:
    header = ["agent", "minus", "split", "competitions", "seeds", "figure", "difference", LIMITS, "probability better"]
    compared = [
        [one.one, one.other, one.scope, str(one.competitions), f"{one.seeds[0]} and {one.seeds[1]}", *_figure(*pair)]
        for one in standings.comparisons
        for pair in one.differences.items()
    ]
    needs = [
        [" and ".join(one.agents), one.scope, str(one.competitions), f"{one.difference:g}", _number(one.seeds, 0)]
        for one in standings.needs
    ]
    theirs = [
        [one.agent, one.models, f"{one.hours:g}", one.date, *_published_medals(one.medals), one.marks or "-"]
        for one in standings.published
    ]
    return [
        Table("Compared", header, compared),
        Table("Seeds needed", ["agents", "split", "competitions", "difference", "seeds of each"], needs),
        Table("Published", ["agent", "models", "hours", "date", "low", "medium", "high", "all", "marks"], theirs),
    ]


def _figure(name: str, difference: Difference | None) -> list[str]:
    places = 3 if name == "normalised" else 2
    if difference is None:
        return [name.replace("_", " "), "-", "-", "-"]
    limits = f"[{difference.low:.{places}f}, {difference.high:.{places}f}]"
    return [name.replace("_", " "), f"{difference.mean:+.{places}f}", limits, f"{difference.probability:.3f}"]


def _published_medals(medals: dict[str, tuple[float, float]]) -> list[str]:
    return [f"{mean:.2f} ± {sem:.2f}" for mean, sem in medals.values()]


def _mean(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.mean:.2f}" + (f" ± {estimate.sem:.2f}" if estimate.sem is not None else "")


def _interval(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"[{estimate.low:.2f}, {estimate.high:.2f}]"


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def to_markdown(standings: Standings) -> str:
    parts = []
    for table in tables(standings):
        rows = [table.header, ["---"] * len(table.header), *table.rows]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        parts.append("\n".join([f"## {table.title}\n", *lines]))
    return "\n\n".join([*parts, *notes(standings)]) + "\n"


def to_csv(standings: Standings) -> str:
    """A row for each entry, scope and figure, in full precision, and for each finding; unknown values are empty."""
    file = io.StringIO()
    head = ["agent", "profile", "data", "padded", "kind", "name", *COUNTED, "figure", *LIMITED, *_flat(Spent()), *FOUND]
    rows = csv.DictWriter(file, head, lineterminator="\n")
    rows.writeheader()
    whole = {"profile": standings.profile, "data": standings.data, "padded": str(standings.padded).lower()}
    for found, scope in _scopes(standings, "split", "given", "category"):
        counts = {name: getattr(scope, name) for name in COUNTED} | _flat(scope.spent)
        for name in SCALES:
            estimate = asdict(figure) if (figure := scope.figures[name]) else {}
            limits = {limit: estimate.get(limit) for limit in LIMITED}
            place = {"agent": found.entry.agent, "kind": scope.kind, "name": scope.name, "figure": name}
            rows.writerow(whole | place | counts | limits)
    for found in standings.entries:
        for one in found.found:
            place = {"agent": found.entry.agent, "kind": "findings", "name": one.tool, "figure": one.finding}
            rows.writerow(whole | place | {"mean": one.share} | {name: getattr(one, name) for name in FOUND})
    for one in standings.published:
        theirs = {"profile": "v1", "data": "published", "padded": str(one.padded).lower()}
        for split, (mean, sem) in one.medals.items():
            place = {"agent": f"{one.agent} / {one.models}", "kind": "split", "name": split, "figure": RATES[0]}
            rows.writerow(theirs | place | {"mean": mean, "sem": sem})
    return file.getvalue()


def _flat(spent: Spent) -> dict[str, float | None]:
    """The values by column name."""
    tokens, unknown = spent.tokens or {}, spent.unknown or {}
    return {
        **{name: getattr(spent, name) for name in _COUNTS},
        "calls": spent.calls,
        **{f"{kind}_tokens": tokens.get(kind) for kind in TOKENS},
        "cost": spent.cost,
        **{f"{name}_unknown": unknown.get(name) for name in ("calls", "tokens", "cost")},
    }


def to_json(standings: Standings) -> str:
    return json.dumps(to_dict(standings), indent=1, allow_nan=False) + "\n"


def to_dict(standings: Standings) -> dict[str, Any]:
    """docs/statistics.md explains every key."""
    return {
        "schema": SCHEMA,
        "mlebench": __version__,
        "profile": standings.profile,
        "data": standings.data,
        "padded": standings.padded,
        "level": LEVEL,
        "entries": [_entry(found) for found in standings.entries],
        "comparisons": [asdict(one) for one in standings.comparisons],
        "seeds_needed": [asdict(one) for one in standings.needs],
        "published": [asdict(one) for one in standings.published],
    }


def _entry(found: EntryStandings) -> dict[str, Any]:
    entry = found.entry
    return {
        "agent": entry.agent,
        "model": entry.model,
        "hours_limit": entry.hours_limit,
        "conditions": entry.conditions,
        "inputs": list(entry.inputs),
        "scopes": [asdict(scope) for scope in found.scopes],
        "findings": [asdict(one) | {"share": one.share} for one in found.found],
        "runs": [asdict(outcome) | {"any_medal": outcome.any_medal} for outcome in entry.outcomes],
    }
