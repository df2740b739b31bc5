"""Shows runs in progress: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench.cli.console import is_terminal, log_line, print_table
from mlebench.cli.quantities import duration_text
from mlebench.core.outcomes import AGENT_ERROR, GRADED, NOT_THE_AGENTS_FAULT
from mlebench.core.paths import RUN_LOG
from mlebench.core.untrusted import plain
from mlebench.records.report import Report
from mlebench.records.run import ENDED, RUNNING
from mlebench.records.run_groups import Group, Run, elapsed, limits_of, read_run
from mlebench.run.model_usage import outcome_words

if TYPE_CHECKING:
    from rich.table import Table

    from mlebench.web.record_values import UsageView

INTERVAL = 1.0
UNEXPLAINED = (AGENT_ERROR, *NOT_THE_AGENTS_FAULT)  # ends that say nothing without their detail
MOST_REASONS = 3


@contextmanager
def live_view(group: Group) -> Iterator[Callable[[], None]]:
    """Yield a function to call from time to time."""
    if not is_terminal(sys.stderr):
        lines = _StateLines(group)
        yield lines.tick
        lines.look()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield _every(INTERVAL, lambda: live.update(live_table(group, live.console.width), refresh=True))


def _every(seconds: float, act: Callable[[], None]) -> Callable[[], None]:
    """Call `act` at most this often, and less often if it is slow, as with thousands of runs on a busy disk."""
    due = 0.0

    def tick() -> None:
        nonlocal due
        begun = time.monotonic()
        if begun >= due:
            act()
            due = begun + max(seconds, 20 * (time.monotonic() - begun))

    return tick


class _StateLines:
    """A line whenever a run's state changes."""

    def __init__(self, group: Group):
        self._group = group
        self._seen = {run.paths.root: run.state for run in group.runs()}
        self.tick = _every(INTERVAL, self.look)

    def look(self) -> None:
        for folder, before in list(self._seen.items()):
            if before == ENDED:
                continue
            run = read_run(folder)
            if run.state != before:
                self._seen[folder] = run.state
                log_line(f"{run.record.competition} seed {run.record.seed}: {_state(run)}")


def _state(run: Run) -> str:
    if run.record.state != ENDED:
        return run.state
    scored = f"{run.record.ended}, {_score(run)}" if run.record.report else str(run.record.ended)
    return f"{scored}: {plain(run.record.detail)}" if run.record.ended in UNEXPLAINED and run.record.detail else scored


def _score(run: Run) -> str:
    report = run.record.report
    if report is None or report.status != GRADED:
        return str(report and report.status)
    return f"score {report.score}, medal {medal_text(report)}"


def medal_text(report: Report | None) -> str | None:
    """The medal in a report; None if there is no report."""
    return report and (report.medal or ("withheld" if report.has_no_medals else "none"))


def live_table(group: Group, width: int) -> "Table":
    """The runs in progress and the last that ended; the last column takes what `width` leaves."""
    from rich.table import Table
    from rich.text import Text

    from mlebench.web.record_values import usage_view

    runs = list(group.runs())
    done = sum(run.record.is_final for run in runs)
    going = [run for run in runs if run.state == RUNNING]
    recent = sorted((run for run in runs if run.record.is_final), key=lambda run: run.record.ended_at or "")[-8:]
    shown = [*recent, *going]
    usages = [usage_view(run) for run in shown]
    title = f"{group.record.agent.name}: {done} of {len(runs)} runs have ended"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
    longest = max((len(run.record.competition) for run in runs), default=0)
    table.add_column("competition", no_wrap=True, overflow="ellipsis", width=min(longest, width // 5))
    for name in ("seed", "state", "time left", *(("calls", "tokens", "cost") if any(usages) else ())):
        table.add_column(name, no_wrap=True)
    table.add_column("last line", no_wrap=True, overflow="ellipsis", ratio=1)
    for run, usage in zip(shown, usages, strict=True):
        state = str(run.record.ended) if run.record.is_final else run.state
        line = _state(run).removeprefix(state).lstrip(",: ") if run.record.is_final else last_line(group, run)
        used = _used(usage) if any(usages) else ()
        # As plain text: an agent's output must not act as markup.
        gone = elapsed(run)
        time_left = "" if gone is None else duration_text(max(0.0, limits_of(group).seconds - gone))
        row = (run.record.competition, str(run.record.seed), state, time_left, *used, line)
        table.add_row(*(Text(cell) for cell in row))
    return table


def _used(usage: "UsageView | None") -> tuple[str, str, str]:
    """Calls, tokens and cost so far."""
    if usage is None:
        return "", "", ""
    tokens = usage.all_tokens
    return f"{usage.calls:,}", "-" if tokens is None else f"{tokens:,}", usage.cost_words


def last_line(group: Group, run: Run) -> str:
    """The last line the agent has printed so far."""
    attempt = run.record.last_attempt
    log = group.paths.work(attempt.token) / RUN_LOG if attempt else Path()
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 2000))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return plain(text.strip().rpartition("\n")[2])[:200]


def print_runs(runs: Iterable[Run]) -> None:
    rows = []
    for run in runs:
        record = run.record
        report = record.report
        state = outcome_words(record) if record.is_final else run.state
        seconds = None if record.seconds is None else duration_text(record.seconds)
        graded, score = (report.status, report.score) if report else (None, None)
        rows.append([record.competition, record.seed, state, seconds, graded, score, medal_text(report)])
    print_table(["competition", "seed", "ended", "time", "submission", "score", "medal"], rows)


def say_why(group: Group, runs: Iterable[Run]) -> None:
    """Why runs failed, the most frequent reasons first, and which commands say more."""
    reasons: dict[str, list[Run]] = {}
    for run in runs:
        if run.fault:
            log_line(
                f"{run.paths.root.name} is damaged, and counts as missing until its record is restored: {run.fault}"
            )
        if run.record.ended in UNEXPLAINED:
            reasons.setdefault(plain(run.record.detail or outcome_words(run.record)), []).append(run)
    for reason, failed in sorted(reasons.items(), key=lambda item: -len(item[1]))[:MOST_REASONS]:
        first = failed[0]
        count = f"{len(failed)} runs, the first of them " if len(failed) > 1 else ""
        log_line(f"{count}{first.record.competition} seed {first.record.seed}: {reason}")
        log_line(f"  Its log: `mlebench runs show {first.paths.root}`")
    if len(reasons) > MOST_REASONS:
        log_line(f"More reasons: `mlebench inspect failures {group.paths.root}`")
    if any(run.record.ended in NOT_THE_AGENTS_FAULT for failed in reasons.values() for run in failed):
        log_line(f"To repeat runs that failed through no fault of the agent: {retry_command(group)}")


def retry_command(group: Group) -> str:
    return f"`mlebench run --resume {group.paths.root} --retry infra`"
