"""Values of records, as people read them."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mlebench.core.outcomes import UNGRADED_STATUSES
from mlebench.records.run_groups import Run, usage_so_far
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.usage_totals import usage_figures
from mlebench.web.render import duration, moment, size
from mlebench.web.run_files import shown
from mlebench.web.views import FactRow, View

MEDALS = ("gold", "silver", "bronze")
UNKNOWN = "unknown"
_BYTES = {"memory", "disk", "shm", "log", "memory_peak", "peak_memory", "log_dropped", "bytes", "packages_limit"}
_SECONDS = {"seconds", "cpu_seconds"}
_NAMES = {
    "kept": "limits kept by",
    "cost": "cost, $",
    "unsealed_by": "unsealed by",
    "gpus": "GPUs",
    "gpus_per_run": "GPUs per run",
    "runs_per_gpu": "runs per GPU",
    "cpus": "CPUs",
    "cpu": "CPU",
    "cpu_seconds": "CPU time",
    "seconds": "time",
    "shm": "shared memory",
    "pids": "processes",
    "data": "data hash",
    "source": "data source",
    "image_id": "image id",
    "memory_peak": "peak memory",
    "peak_memory": "peak memory",
    "oom_kills": "killed for memory",
    "log_dropped": "log left out",
    "left_out_in_all": "left out",
    "left_out": "left out, the first",
    "memory_mb": "memory, MB",
}


class UsageView(View):
    """Calls, tokens and cost of a run so far, as the gateway counted them."""

    calls: int
    tokens: dict[str, int | None]
    cost: float | None
    is_lower_bound: bool
    all_tokens: int | None
    cost_words: str
    rows: list[FactRow]


def fact_rows(values: Mapping[str, Any]) -> list[FactRow]:
    """A name and a text for each value; those of a mapping are listed below its name."""
    return [row for key, value in shown(values).items() for row in _rows(key, value)]


def _rows(key: str, value: Any) -> Iterator[FactRow]:
    if isinstance(value, dict) and value:
        below = [row for inner, item in value.items() for row in _rows(inner, item)]
        yield FactRow(name=name_of(key), text=None, below=below)
    else:
        name = "left out" if key == "left_out" and isinstance(value, int) else name_of(key)  # a count, not a list
        yield FactRow(name=name, text=text_of(key, value), below=[])


def name_of(key: str) -> str:
    return _NAMES.get(key, key.replace("_", " "))


def text_of(key: str, value: Any) -> str:
    if value is None and key == "cost":
        return UNKNOWN
    if value in (None, "", [], {}):
        return "none" if value == [] else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if key in _BYTES:
            return size(value)
        return duration(value) if key in _SECONDS else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
    if isinstance(value, list) and key == "gpus" and all(isinstance(item, str) for item in value):
        return f"{len(value)} (index {', '.join(value)})"
    if isinstance(value, list):
        return ", ".join(text_of(key, item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name_of(inner)}: {text_of(inner, item)}" for inner, item in value.items())
    return moment(value) + " UTC" if key.endswith("_at") and moment(value) != "–" else str(value)


def result_of(run: Run) -> str:
    """In one word, as in the medal grid: a medal, or how far the run got."""
    report = run.record.report
    if not run.record.is_final:
        return "open"
    if not report or report.status in UNGRADED_STATUSES:
        return "missing"
    if report.medal:
        return report.medal
    if report.above_median:
        return "median"
    return "valid" if report.valid_submission else "invalid" if report.submission_exists else "none"


def percentile_of(run: Run, lookup: CompetitionLookup) -> float | int | None:
    """The share of human teams that the run beats; None without a score."""
    report = run.record.report
    if report is None or report.percentile is not None or number_of(report.score) is None:
        return report and report.percentile
    return lookup.percentile(report)


def number_of(value: Any) -> float | int | None:
    """A finite number; None for anything else."""
    value = shown(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def usage_view(run: Run) -> UsageView | None:
    """Calls, tokens and cost so far, as the gateway counted them; None if it did not."""
    usage = usage_so_far(run)
    if usage is None:
        return None
    use = usage_figures(usage)
    counts = [use["tokens"][kind] for kind in ("input", "output")] if use["tokens"] else []
    known = [count for count in counts if count is not None]
    all_tokens = sum(known) if known else None
    return UsageView(
        **use,
        all_tokens=all_tokens,
        cost_words=cost_words(use["cost"], partial=use["is_lower_bound"]),
        rows=fact_rows(msgspec.to_builtins(usage)),
    )


def cost_words(cost: float | None, *, partial: bool) -> str:
    """US dollars, as people read them; `partial` says that some calls are not in it."""
    if cost is None or (partial and not cost):
        return UNKNOWN
    return f"{'at least ' if partial else ''}${cost:,.{4 if 0 < cost < 0.01 else 2}f}"
