"""Renders standings as tables for people, markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec

from mlebench import __version__
from mlebench.config import RELEASES
from mlebench.grade.badges import LOW_POWER
from mlebench.records.conditions import CONDITIONS, Condition, Conditions, alike_text, differing, unlike, unlike_text
from mlebench.report.finding_counts import FindingCount
from mlebench.report.intervals import LEVEL, MeanDifference
from mlebench.report.standings import RATES, SCALES, EntryStandings, Recount, Scope, Standings
from mlebench.report.types import TWIN
from mlebench.report.usage_totals import TOKENS, UsageTotals

SCHEMA = 1
COUNTED = ("competitions", "seeds", "seeds_given", "missing")
LIMITED = ("mean", "sem", "low", "high")
RECOUNT_COLUMNS = ("medals", "badged", "without")
FINDING_COLUMNS = ("runs", "of", "not_inspected", "not_enough_evidence", "trust")
BADGE_NOTE = (
    "A badge is a reason to look twice at a medal, not a verdict: it may have had help from the known issue that is "
    "named, or be chance (low_power). docs/understanding/profile-v2.md explains badges, `mlebench show` the issues."
)
LIMITS = f"{LEVEL:.0%} interval"
_COUNTS = ("hours", "gpu_hours", "starts", "rerolls", "unsealed", "infra_errors", "model_unavailable")


class TextTable(NamedTuple):
    title: str
    header: Sequence[str]
    rows: list[list[str]]
    keys: int = 2  # how many columns say what a row is about


def tables(standings: Standings) -> list[TextTable]:
    """What people read. Tables without rows are left out."""
    all_tables = [
        _standings_table(standings),
        _category_table(standings),
        _badge_table(standings),
        _left_out_table(standings),
        _found_table(standings),
        *_extra_tables(standings),
    ]
    return [table for table in all_tables if table.rows]


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
        release = RELEASES.get(standings.profile, standings.profile)
        lines.append(f"Figures are for mlebench profile {release}; published figures are for v1.")
    lines += _withheld_note(standings)
    if any(row.badge_counts for row in standings.entries):
        lines.append(BADGE_NOTE)
    lines += _recount_notes(standings)
    lines += _condition_notes(standings)
    lines += [
        f"{row.entry.agent}: {row.entry.origin}; what it does not state is unknown."
        for row in standings.entries
        if row.entry.origin
    ]
    scopes = [scope for row in standings.entries for scope in row.scopes]
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


def _withheld_note(standings: Standings) -> Iterator[str]:
    """How many competitions have no medals to count."""
    scopes = [scope for row in standings.entries for scope in row.scopes]
    withheld, competitions = max((scope.withheld, scope.competitions) for scope in scopes)
    if withheld:
        yield (
            f"Medals of up to {withheld} of {competitions} competitions are withheld, because their test sets do not "
            "measure what the leaderboard did: these count in no rate of medals, but in percentiles."
        )


def _recount_notes(standings: Standings) -> Iterator[str]:
    """What a recount leaves out, and what it cannot know."""
    recount = standings.recount
    if recount is None:
        return
    without = title_without(recount)
    yield (
        f"{without[:1].upper()}{without[1:]}: {len(recount.left_out)} competitions count for no entry. A seed is "
        "complete if it has a run of every competition that remains."
    )
    if LOW_POWER in recount.without:
        yield (
            "low_power depends on results: a competition is left out if a medal in it might have been missed, never "
            "because a missed one might have been earned, so rates without it tend to be too low."
        )
    if recount.unsized:
        yield (
            f"No report says how many test units {len(recount.unsized)} of the remaining competitions have: these "
            "count, whatever their size."
        )
    if standings.published:
        yield "Published entries are totals: nothing can be left out of them."


def title_without(recount: Recount) -> str:
    return f"without {', '.join(recount.without)}"


def with_recount(standings: Standings) -> Iterator[tuple[Standings, str]]:
    """Yield the standings and, if there is one, their recount, each with what it adds to the names of splits."""
    yield standings, ""
    if standings.recount:
        yield standings.recount.standings, f" {title_without(standings.recount)}"


def columns(standings: Standings) -> list[Condition]:
    """The conditions in which entries differ, apart from the agents themselves: each has a column."""
    apart = differing(row.entry.conditions for row in standings.entries)
    return [condition for condition in apart if condition.kind != "agent"]


def _condition_notes(standings: Standings) -> Iterator[str]:
    """The conditions of all entries, what runs are pooled over, and what is unlike."""
    entries = [row.entry for row in standings.entries]
    silent = [entry.agent for entry in entries if not entry.conditions.are_stated]
    if silent:
        whose = "" if len(silent) == len(entries) else f" of {', '.join(silent)}"
        yield f"Conditions{whose} are not stated."
    if alike := alike_text([entry.conditions for entry in entries]):
        whose = "" if len(entries) == 1 else " of all others" if silent else " of all entries"
        yield f"Conditions{whose}: {alike}."
    for entry in entries:
        if pooled := entry.conditions.pooled_text:
            yield f"The runs of {entry.agent} are pooled over {pooled}: machines decided, as nothing was requested."
    if unfair := [condition.title for condition in columns(standings) if condition.kind == "condition"]:
        yield f"Entries are not like with like: they differ in {', '.join(unfair)}. --strict refuses to compare them."


def _standings_table(standings: Standings) -> TextTable:
    header = ["agent", "split", *_titles(standings), "competitions", "seeds", "missing", "any medal", LIMITS]
    header += ["gold", "silver", "bronze"]
    header += ["above median", "valid", "submitted", "percentile", "normalised", "badged medals"]
    header += ["hours", "GPU hours", "starts", "re-rolls", "unsealed", "infra errors", "calls", "tokens", "cost, $"]
    rows = [
        [*_key_cells(counted, row, scope, without), *_medals(scope), *_other_figures(scope), *_spent(scope)]
        for counted, without in with_recount(standings)
        for row, scope in _scopes(counted, "split", "given")
    ]
    return TextTable("Standings", header, rows)


def _category_table(standings: Standings) -> TextTable:
    header = ["agent", "category", *_titles(standings), "competitions", "seeds", "missing", "any medal", LIMITS]
    rows = [
        [*_key_cells(counted, row, scope, without), *_medals(scope)]
        for counted, without in with_recount(standings)
        for row, scope in _scopes(counted, "category")
    ]
    return TextTable("By category", header, rows)


def _badge_table(standings: Standings) -> TextTable:
    header = ["agent", "competition", "badge", "medals"]
    rows = [
        [row.entry.agent, count.competition, _with_kind(count.badge, count.kind), f"{count.medals} of {count.of}"]
        for row in standings.entries
        for count in row.badge_counts
    ]
    return TextTable("Badges", header, rows, keys=3)


def _with_kind(label: str, kind: str) -> str:
    return label if label == kind else f"{label} ({kind})"


def _left_out_table(standings: Standings) -> TextTable:
    left_out = standings.recount.left_out if standings.recount else []
    rows = [
        [omission.competition, ", ".join(_with_kind(badge.label, badge.kind) for badge in omission.badges)]
        for omission in left_out
    ]
    return TextTable("Left out", ["left out", "because of"], rows, keys=1)


def _found_table(standings: Standings) -> TextTable:
    header = ["agent", "tool", "finding", *_titles(standings), "runs", "of", "share, %", "not inspected", "trust"]
    rows = [
        [row.entry.agent, count.tool, count.finding, *_texts(standings, row), *_finding_cells(count)]
        for row in standings.entries
        for count in row.finding_counts
    ]
    return TextTable("Findings", header, rows, keys=3)


def _finding_cells(count: FindingCount) -> list[str]:
    unsure = f"; not enough evidence in {count.not_enough_evidence}" if count.not_enough_evidence else ""
    trust = f"{count.trust or '-'}{unsure}"
    return [str(count.runs), str(count.of), _number(count.share, 1), str(count.not_inspected), trust]


def _scopes(standings: Standings, *kinds: str) -> Iterator[tuple[EntryStandings, Scope]]:
    for row in standings.entries:
        yield from ((row, scope) for scope in row.scopes if scope.kind in kinds)


def _titles(standings: Standings) -> list[str]:
    return [condition.title for condition in columns(standings)]


def _texts(standings: Standings, row: EntryStandings) -> list[str]:
    return [row.entry.conditions.texts[condition.name] for condition in columns(standings)]


def _key_cells(standings: Standings, row: EntryStandings, scope: Scope, without: str) -> list[str]:
    seeds = str(scope.seeds) if scope.seeds == scope.seeds_given else f"{scope.seeds} of {scope.seeds_given}"
    cells = [row.entry.agent, f"{scope.name}{without}", *_texts(standings, row)]
    return [*cells, str(scope.competitions), seeds, str(scope.missing)]


def _medals(scope: Scope) -> list[str]:
    medals = scope.figures["any_medal"]
    if medals is None:
        return ["-", "-"]
    sem = "" if medals.sem is None else f" ± {medals.sem:.2f}"
    return [f"{medals.mean:.2f}{sem}", f"[{medals.low:.2f}, {medals.high:.2f}]"]


def _other_figures(scope: Scope) -> list[str]:
    means = {name: estimate and estimate.mean for name, estimate in scope.figures.items() if name != "any_medal"}
    badged = f"{scope.badged} of {scope.medals}" if scope.medals else "-"
    return [*(_number(mean, 3 if name == "normalised" else 2) for name, mean in means.items()), badged]


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


def _extra_tables(standings: Standings) -> list[TextTable]:
    header = ["agent", "minus", "split", "figure", "competitions", "seeds", "difference", LIMITS, "probability better"]
    unfair = any(comparison.unlike for comparison in standings.comparisons)
    compared = [
        [
            comparison.one,
            comparison.other,
            f"{comparison.scope}{without}",
            figure.replace("_", " "),
            str(comparison.competitions),
        ]
        + [f"{comparison.seeds[0]} and {comparison.seeds[1]}", *_difference(figure, difference)]
        + [unlike_text(comparison.unlike) or "-"] * unfair
        for counted, without in with_recount(standings)
        for comparison in counted.comparisons
        for figure, difference in comparison.differences.items()
    ]
    needs = [
        [" and ".join(need.agents), f"{need.scope}{without}", str(need.competitions), f"{need.difference:g}"]
        + [_number(need.seeds, 0)]
        for counted, without in with_recount(standings)
        for need in counted.needs
    ]
    published = [
        [entry.agent, entry.models, f"{entry.hours:g}", entry.date]
        + [f"{mean:.2f} ± {sem:.2f}" for mean, sem in entry.medals.values()]
        + [entry.marks or "-"]
        for entry in standings.published
    ]
    return [
        TextTable("Compared", header + ["unlike"] * unfair, compared, keys=4),
        TextTable("Seeds needed", ["agents", "split", "competitions", "difference", "seeds of each"], needs),
        TextTable(
            "Published", ["agent", "models", "hours", "date", "low", "medium", "high", "all", "marks"], published
        ),
    ]


def _difference(figure: str, difference: MeanDifference | None) -> list[str]:
    places = 3 if figure == "normalised" else 2
    if difference is None:
        return ["-", "-", "-"]
    limits = f"[{difference.low:.{places}f}, {difference.high:.{places}f}]"
    return [f"{difference.mean:+.{places}f}", limits, f"{difference.probability:.3f}"]


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def to_markdown(standings: Standings) -> str:
    """Return the tables of the standings in Markdown, followed by the notes that a reader needs."""
    parts = []
    for table in tables(standings):
        rows = [table.header, ["---"] * len(table.header), *table.rows]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        parts.append("\n".join([f"## {table.title}\n", *lines]))
    return "\n\n".join([*parts, *notes(standings)]) + "\n"


def to_csv(standings: Standings) -> str:
    """The rows of `standings_rows`; unknown values are empty."""
    file = io.StringIO()
    rows = standings_rows(standings)
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | {"padded": str(row["padded"]).lower()} for row in rows)
    return file.getvalue()


def standings_rows(standings: Standings) -> list[dict[str, Any]]:
    """Return the standings as rows for `pandas.DataFrame`: one for each entry, scope and figure, and for each finding.

    Figures have full precision. Every row has the same keys; unknown values are None.
    """
    head = [
        "agent",
        "profile",
        "data",
        "padded",
        "kind",
        "name",
        *COUNTED,
        "figure",
        *LIMITED,
        *_flat(UsageTotals()),
        *FINDING_COLUMNS,
        *RECOUNT_COLUMNS,
    ]
    empty = dict.fromkeys([*head, *_flat_conditions(Conditions(), Conditions())])
    return [empty | row for row in _rows(standings)]


def _rows(standings: Standings) -> Iterator[dict[str, Any]]:
    whole = {"profile": standings.profile, "data": standings.data, "padded": standings.padded}
    first = standings.entries[0].entry.conditions
    yield from _scope_rows(standings, whole)
    if recount := standings.recount:
        whole_recount = whole | {"without": ",".join(recount.without)}
        yield from _scope_rows(recount.standings, whole_recount)
        for omission in recount.left_out:
            for badge in omission.badges:
                key = {"kind": "left_out", "name": omission.competition, "figure": badge.label}
                yield whole_recount | key
    for row in standings.entries:
        conditions = _flat_conditions(row.entry.conditions, first)
        for count in row.badge_counts:
            key = {"agent": row.entry.agent, "kind": "badges", "name": count.competition, "figure": count.badge}
            yield conditions | whole | key | {"medals": count.of, "badged": count.medals}
        for count in row.finding_counts:
            key = {"agent": row.entry.agent, "kind": "findings", "name": count.tool, "figure": count.finding}
            shares = {"mean": count.share} | {name: getattr(count, name) for name in FINDING_COLUMNS}
            yield conditions | whole | key | shares
    for entry in standings.published:
        theirs = {"profile": "v1", "data": "published", "padded": entry.padded}
        for split, (mean, sem) in entry.medals.items():
            key = {"agent": f"{entry.agent} / {entry.models}", "kind": "split", "name": split, "figure": RATES[0]}
            yield theirs | key | {"mean": mean, "sem": sem}


def _scope_rows(standings: Standings, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    first = standings.entries[0].entry.conditions
    for row, scope in _scopes(standings, "split", "given", "category"):
        conditions = _flat_conditions(row.entry.conditions, first)
        counts = {name: getattr(scope, name) for name in (*COUNTED, "medals", "badged")} | _flat(scope.spent)
        for name in SCALES:
            estimate = asdict(figure) if (figure := scope.figures[name]) else {}
            limits = {limit: estimate.get(limit) for limit in LIMITED}
            key = {"agent": row.entry.agent, "kind": scope.kind, "name": scope.name, "figure": name}
            yield conditions | whole | key | counts | limits


def _flat_conditions(conditions: Conditions, first: Conditions) -> dict[str, str]:
    """The conditions of an entry by column name, and in what it is unlike the first entry."""
    texts = {
        condition.name: conditions.texts[condition.name]
        for condition in CONDITIONS
        if condition.kind not in ("agent", "detail")
    }
    return texts | {"unlike": unlike_text(unlike(first, conditions))}


def _flat(spent: UsageTotals) -> dict[str, float | None]:
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
    """Return all of the standings as JSON, with the outcome of every run: docs/understanding/statistics.md."""
    return {
        "schema": SCHEMA,
        "mlebench": __version__,
        "profile": standings.profile,
        "data": standings.data,
        "padded": standings.padded,
        "level": LEVEL,
        "conditions": {
            "alike": alike_text([row.entry.conditions for row in standings.entries]),
            "differing": [condition.name for condition in columns(standings)],
        },
        "entries": [_entry(row) for row in standings.entries],
        "comparisons": [asdict(comparison) for comparison in standings.comparisons],
        "seeds_needed": [asdict(need) for need in standings.needs],
        "published": [asdict(entry) for entry in standings.published],
        "recount": _recount(standings.recount) if standings.recount else None,
    }


def _recount(recount: Recount) -> dict[str, Any]:
    standings = recount.standings
    return {
        "without": list(recount.without),
        "left_out": [msgspec.to_builtins(omission) for omission in recount.left_out],
        "unsized": recount.unsized,
        "entries": [
            {"agent": row.entry.agent, "scopes": [asdict(scope) for scope in row.scopes]} for row in standings.entries
        ],
        "comparisons": [asdict(comparison) for comparison in standings.comparisons],
        "seeds_needed": [asdict(need) for need in standings.needs],
    }


def _entry(row: EntryStandings) -> dict[str, Any]:
    entry = row.entry
    return {
        "agent": entry.agent,
        "model": entry.model,
        "hours_limit": entry.hours_limit,
        "conditions": entry.conditions.values if entry.conditions.are_stated else {},
        "pooled": entry.conditions.pooled,
        "origin": entry.origin,
        "inputs": list(entry.inputs),
        "scopes": [asdict(scope) for scope in row.scopes],
        "findings": [asdict(count) | {"share": count.share} for count in row.finding_counts],
        "badges": [asdict(count) for count in row.badge_counts],
        "runs": [msgspec.to_builtins(outcome) | {"any_medal": outcome.any_medal} for outcome in entry.outcomes],
    }
