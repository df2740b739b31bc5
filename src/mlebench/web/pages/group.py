"""A run group: what was asked for, how far it has got, what failed, and all its runs."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mlebench.core.outcomes import (
    AGENT_ERROR,
    CANCELLED,
    GRADED,
    GRADER_ERROR,
    INFRA_ERROR,
    INVALID,
    LIMIT,
    MISSING,
    MODEL_UNAVAILABLE,
    NOT_PREPARED,
    NOT_THE_AGENTS_FAULT,
    OUT_OF_MEMORY,
    OVER_DISK,
    RUN_OUTCOMES,
)
from mlebench.core.paths import RUN_LOG
from mlebench.core.untrusted import one_line
from mlebench.records.run import DAMAGED, PLANNED, RUNNING
from mlebench.records.run_groups import Group, Run, elapsed
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.web.pages.groups import Heading, counts_of, heading_of, is_failed, medals_of, usage_columns
from mlebench.web.record_values import fact_rows, number_of, percentile_of, result_of
from mlebench.web.run_files import AttemptFiles, shown, tail
from mlebench.web.site import Page, Site
from mlebench.web.views import FactRow, View

MOST_ROWS = 1000  # on a page
MOST_SHOWN = 12  # runs in progress, or that failed in the same way
JUDGED = (GRADED, MISSING)
ADVICE = {
    MODEL_UNAVAILABLE: "No call to the model succeeded, through no fault of the agent.",
    INFRA_ERROR: "The infrastructure failed, not the agent.",
    AGENT_ERROR: "The agent failed.",
    OUT_OF_MEMORY: "The agent used more memory than it had.",
    OVER_DISK: "The agent wrote more to disk than it was allowed.",
    DAMAGED: "Its record cannot be read: restore run.json.",
    INVALID: "The submission was not valid.",
    GRADER_ERROR: "The grader failed: please report this.",
    LIMIT: "Grading took more than the limits that were set for it.",
    NOT_PREPARED: "The data was not prepared when this was graded.",
}


class FailedRun(View):
    run: str
    competition: str
    seed: int | None
    why: str


class Failure(View):
    """Runs that failed in the same way; only the first are listed."""

    kind: str
    advice: str | None
    is_retried: bool
    count: int
    runs: list[FailedRun]


class RunInProgress(View):
    run: str
    title: str
    seed: int | None
    seconds: float | None
    share: float | None
    last_line: str
    cost: float | None
    cost_words: str | None
    calls: int | None
    tokens: int | None


class RunRow(View):
    run: str
    competition: str
    title: str
    seed: int | None
    state: str
    ended: str | None
    cause: str | None
    status: str | None
    result: str
    score: float | None
    percentile: float | None
    seconds: float | None
    attempts: int
    rerolls: int | None
    cost: float | None
    cost_words: str | None
    calls: int | None
    tokens: int | None


class GroupView(Heading):
    asked: list[FactRow]
    report: str | None
    counts: dict[str, int]
    medals: dict[str, int]
    cost: float | None
    cost_words: str | None
    calls: int | None
    tokens: int | None
    seconds_limit: float | None
    failures: list[Failure]
    states: list[str]
    going_on: list[RunInProgress]
    rows: list[RunRow]
    number: int
    pages: list[str]


def path_of(group: str, number: int = 1) -> str:
    return f"group/{group}.html" if number == 1 else f"group/{group}/{number}.html"


def paths(site: Site) -> Iterator[str]:
    for name, group in site.group_named.items():
        count = sum(1 for _ in group.run_paths())
        yield from (path_of(name, number) for number in range(1, _pages(count) + 1))


def page(site: Site, path: str, name: str, number: str = "1") -> Page | None:
    group = site.group_named.get(name)
    if group is None:
        return None
    runs = list(group.runs())
    at, pages = int(number), _pages(len(runs))
    if at > pages:
        return None
    counts, lookup = counts_of(runs), CompetitionLookup(site.registry)
    view = GroupView(
        **msgspec.structs.asdict(heading_of(group)),
        asked=fact_rows(_requested(group)),
        report=shown(group.record.report),
        counts=counts,
        medals=medals_of(runs),
        **usage_columns(runs),
        seconds_limit=group.record.limits and group.record.limits.seconds,
        failures=_failures(runs),
        states=[PLANNED, RUNNING, *(outcome for outcome in RUN_OUTCOMES if outcome != CANCELLED)],
        going_on=[_in_progress(site, group, run) for run in runs if run.state == RUNNING][:MOST_SHOWN],
        rows=[_row(site, run, lookup) for run in runs[(at - 1) * MOST_ROWS : at * MOST_ROWS]],
        number=at,
        pages=[path_of(name, page_number) for page_number in range(1, pages + 1)],
    )
    live = site.live and bool(counts["running"] or counts["planned"])
    return Page(path, "group.html", f"{view.agent}, {name}", view, live=live)


ROUTES = ((r"group/([^/]+)\.html", page), (r"group/([^/]+)/([2-9]|[1-9][0-9]{1,3})\.html", page))


def _pages(runs: int) -> int:
    return max(1, -(-runs // MOST_ROWS))


def _requested(group: Group) -> dict[str, Any]:
    """What was asked for, by name: the most important first."""
    record = group.record
    agent = {name: getattr(record.agent, name) for name in ("name", "model", "scaffold", "identity")}
    left_out = ("mlebench", "id", "agent", "competitions", "report")
    rest = {name: value for name, value in record.to_dict().items() if name not in left_out}
    first = ("seeds", "network", "sandbox", "limits", "gpus_per_run", "workers", "profile", "twin", "machine")
    return {
        "agent": {name: value for name, value in agent.items() if value},
        "competitions": len(record.competitions),
        **{name: rest.pop(name) for name in first},
        **{name: value for name, value in rest.items() if value not in (None, "", {}) and name != "schema"},
        **({} if record.origin else {"mlebench": record.mlebench}),
    }


def title_of(site: Site, id: str) -> str:
    competition = site.competition(id)
    return competition.name if competition else one_line(id, 80)


def _row(site: Site, run: Run, lookup: CompetitionLookup) -> RunRow:
    record, report = run.record, run.record.report
    outage = record.model.unavailable if record.model and record.ended == MODEL_UNAVAILABLE else None
    return RunRow(
        run=run.paths.root.name,
        competition=one_line(record.competition, 80),
        title=title_of(site, record.competition),
        seed=record.seed,
        state=run.state,
        ended=shown(record.ended, 40),
        cause=one_line(outage.cause, 40) if outage else None,
        status=shown(report and report.status, 40),
        result=result_of(run),
        score=number_of(report and report.score),
        percentile=percentile_of(run, lookup),
        seconds=number_of(record.seconds) if record.is_final else elapsed(run),
        attempts=len(record.attempts),
        rerolls=record.rerolls,
        **usage_columns([run]),
    )


def _in_progress(site: Site, group: Group, run: Run) -> RunInProgress:
    files = AttemptFiles.of(group, run)
    last = tail(files.base, RUN_LOG, 4000).text.strip().rpartition("\n")[2]
    limit = group.record.limits and group.record.limits.seconds
    gone = elapsed(run)
    return RunInProgress(
        run=run.paths.root.name,
        title=title_of(site, run.record.competition),
        seed=run.record.seed,
        seconds=gone,
        share=min(1.0, gone / limit) if gone is not None and limit else None,
        last_line=one_line(last, 160),
        **usage_columns([run]),
    )


def _failures(runs: Sequence[Run]) -> list[Failure]:
    """What went wrong, by kind, the most frequent first."""
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        status = run.record.report and run.record.report.status
        if run.fault:
            kinds.setdefault(DAMAGED, []).append(run)
        if is_failed(run):
            kinds.setdefault(str(run.record.ended), []).append(run)
        if status is not None and status not in JUDGED:
            kinds.setdefault(str(status), []).append(run)
    return [
        Failure(
            kind=one_line(kind, 40),
            advice=ADVICE.get(kind),
            is_retried=kind in NOT_THE_AGENTS_FAULT,
            count=len(failed),
            runs=[_failed_run(run, kind) for run in failed[:MOST_SHOWN]],
        )
        for kind, failed in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]


def _failed_run(run: Run, kind: str) -> FailedRun:
    reason = run.record.report and run.record.report.reason
    if run.fault or kind == run.record.ended:
        reason = run.fault or run.record.detail
    return FailedRun(
        run=run.paths.root.name,
        competition=one_line(run.record.competition, 80),
        seed=run.record.seed,
        why=one_line(reason or "", 300),
    )
