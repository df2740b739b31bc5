"""A run: how it went, under which conditions, what its agent wrote, submitted and earned."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from mlebench.config import FIRST_PROFILE
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import CODE, LOGS, RUN_LOG, RUNNER_LOG, SUBMISSION, RunPaths
from mlebench.core.untrusted import one_line
from mlebench.records.report import Badge, Report
from mlebench.records.run_groups import Group, Run, elapsed
from mlebench.records.timeline import HOST, read_timeline, truncate_text
from mlebench.scoring import Thresholds, read_leaderboard
from mlebench.web import history
from mlebench.web.draw_run import LINES
from mlebench.web.inspection_view import SharedCode, ToolFindings, findings, shared_code
from mlebench.web.pages.group import title_of
from mlebench.web.pages.groups import Heading, heading_of
from mlebench.web.record_values import UsageView, fact_rows, number_of, percentile_of, result_of, usage_view
from mlebench.web.run_files import (
    AttemptFiles,
    FileText,
    TablePreview,
    address,
    head,
    listing,
    preview_table,
    shown,
    tail,
)
from mlebench.web.site import Page, Site
from mlebench.web.views import FactRow, ScorePoint, View

LOG_END = 60_000  # bytes of the log that are shown
RUNNER_LOG_END = 8_000
MOST_CODE, LONGEST_CODE = 12, 8_000
FIRST_EVENTS, LAST_EVENTS = 150, 150  # of a story
LONGEST_EVENT, MOST_STORY = 6_000, 400_000  # characters
TEXTS = (".py", ".ipynb", ".sh", ".r", ".jl", ".md", ".txt", ".toml", ".yaml", ".yml", ".json", ".sql", ".cfg")


class Glance(View):
    """What a run earned."""

    result: str
    status: str | None
    reason: str | None
    suspicious: str | None
    score: float | None
    percentile: float | None
    thresholds: dict[str, float] | None
    lower: bool
    teams: int | None
    teams_beaten: int | None
    normalised_score: float | None
    score_low: float | None
    score_high: float | None
    medal_holds: float | None
    known_issues: int | None
    badges: list[Badge]  # of its medal


class CodeView(View):
    """The beginning of a program or text."""

    name: str
    text: str
    size: int
    cut: bool
    fault: str | None


class FileView(View):
    name: str
    size: int | None
    kind: str | None
    url: str | None


class FolderView(View):
    folder: str
    files: list[FileView]  # the first ones
    count: int
    bytes: int
    is_whole: bool


class StoryEvent(View):
    kind: str
    source: str
    title: str
    step: int | None
    after: float
    text: str
    cut: int


class StoryView(View):
    """What the agent and its model did, by their own account; what the host knows is in the timeline."""

    events: list[StoryEvent] = msgspec.field(default_factory=list)
    count: int = 0
    left_out: list[str] = msgspec.field(default_factory=list)
    usage: dict[str, float | str | None] | None = None


class RunView(View):
    group: Heading
    run: str
    competition: str
    known: bool
    seed: int | None
    state: str
    ended: str | None
    detail: str | None
    rerolls: int | None
    seconds: float | None
    seconds_limit: float | None
    glance: Glance
    timeline: history.TimelineView
    kept: list[history.KeptSubmission]
    attempt_shown: int | None
    log: FileText
    log_url: str | None
    runner_log: FileText
    submission: TablePreview
    code: list[CodeView]
    files: list[FolderView]
    scores: list[ScorePoint]
    story: StoryView
    model: UsageView | None
    card: list[FactRow]
    report: list[FactRow]
    findings: list[ToolFindings]
    shared: SharedCode | None
    title: str


class UnreadableRun(View):
    group: Heading
    run: str
    fault: str


def path_of(group: str, run: str) -> str:
    return f"run/{group}/{run}.html"


def paths(site: Site) -> Iterator[str]:
    for name, group in site.group_named.items():
        yield from (path_of(name, where.root.name) for where in group.run_paths())


def page(site: Site, path: str, group_name: str, name: str) -> Page | None:
    group = site.group_named.get(group_name)
    if group is None or "\0" in name or name in (".", ".."):
        return None
    where = RunPaths(group.paths.root / name)
    if where.root.is_symlink() or not _is_run(group, where):
        return None
    try:
        run = Run.read(where.root)
    except (PrerequisiteError, OSError) as error:
        view = UnreadableRun(group=heading_of(group), run=name, fault=shown(str(error)))
        return Page(path, "run_unreadable.html", one_line(name, 80), view)
    view = _view(site, group, run)
    name = view.title if run.record.seed is None else f"{view.title}, seed {run.record.seed}"
    return Page(path, "run.html", name, view, live=site.live and not run.record.is_final)


def _is_run(group: Group, where: RunPaths) -> bool:
    is_ours = group.record.origin is None and where.record.is_file()
    return is_ours or any(run.root.name == where.root.name for run in group.run_paths())


ROUTES = ((r"run/([^/]+)/([^/]+)\.html", page),)


def _view(site: Site, group: Group, run: Run) -> RunView:
    files = AttemptFiles.of(group, run)
    submissions = history.kept_submissions(files)
    record = run.record
    return RunView(
        group=heading_of(group),
        run=run.paths.root.name,
        competition=one_line(record.competition, 80),
        known=site.competition(record.competition) is not None,
        seed=record.seed,
        state=run.state,
        ended=shown(record.ended, 40),
        detail=shown(record.detail),
        rerolls=record.rerolls,
        seconds=number_of(record.seconds) if record.is_final else elapsed(run),
        seconds_limit=group.record.limits and group.record.limits.seconds,
        glance=_glance(site, run),
        timeline=history.timeline(run, submissions),
        kept=submissions,
        attempt_shown=files.attempt,
        log=tail(files.base, RUN_LOG, LOG_END),
        log_url=_url(site, run, files.inside, RUN_LOG),
        runner_log=tail(run.paths.root, RUNNER_LOG, RUNNER_LOG_END),
        submission=preview_table(files.base, f"{files.home}{SUBMISSION}/{SUBMISSION}.csv"),
        code=_code(files),
        files=_files(site, run, files),
        scores=history.scores(run),
        story=_story(run),
        model=usage_view(run),
        card=fact_rows(_card(group, run)),
        report=fact_rows(msgspec.to_builtins(record.report) if record.report else {}),
        findings=list(findings(run)),
        shared=shared_code(run) if record.is_final else None,
        title=title_of(site, record.competition),
    )


def _glance(site: Site, run: Run) -> Glance:
    report = run.record.report or Report(competition_id=run.record.competition)
    thresholds, lower = _thresholds(site, run)
    return Glance(
        result=result_of(run),
        status=shown(report.status, 40),
        reason=shown(report.reason),
        suspicious=shown(report.suspicious),
        score=number_of(report.score),
        percentile=percentile_of(run, site.lookup(site.registry.profile)),
        thresholds=thresholds,
        lower=lower,
        teams=report.teams,
        teams_beaten=report.teams_beaten,
        normalised_score=report.normalised_score,
        score_low=report.score_low,
        score_high=report.score_high,
        medal_holds=report.medal_holds,
        known_issues=report.known_issues,
        badges=list(site.badges(report)) if report.medal else [],
    )


def _thresholds(site: Site, run: Run) -> tuple[dict[str, float] | None, bool]:
    """The thresholds that the run was, or will be, measured against."""
    report = run.record.report
    stated = {name: getattr(report, f"{name}_threshold", None) for name in LINES}
    if report and None not in stated.values():
        return {name: float(value or 0) for name, value in stated.items()}, bool(report.is_lower_better)
    if report and report.profile not in (None, FIRST_PROFILE):  # which withholds some of them
        return None, bool(report.is_lower_better)
    competition = site.competition(run.record.competition)
    if competition is None:
        return None, False
    try:
        thresholds = Thresholds.of(read_leaderboard(competition.leaderboard))._asdict()
    except (PrerequisiteError, ValueError):
        return None, False
    return {name: thresholds[name] for name in LINES}, competition.lower_is_better


def _story(run: Run) -> StoryView:
    if not run.record.started_at:
        return StoryView()
    try:
        account = read_timeline(run)
    except (PrerequisiteError, OSError, ValueError) as error:
        return StoryView(left_out=[one_line(error, 300)])
    events = [event for event in account.events if event.source != HOST]
    room, shown_events = MOST_STORY, []
    zero = history.zero_of(run) or account.begun
    for event in [*events[:FIRST_EVENTS], *events[FIRST_EVENTS:][-LAST_EVENTS:]]:
        text, cut = truncate_text(event.text, max(200, min(LONGEST_EVENT, room)))
        room -= len(text)
        shown_events.append(
            StoryEvent(
                kind=event.kind,
                source=event.source,
                title="" if event.title == event.kind else event.title.removeprefix(f"{event.kind}, "),
                step=event.step,
                after=max(0.0, event.time - zero),  # an agent's own times are not trusted
                text=text,
                cut=cut + event.cut,
            )
        )
    usage = None if account.usage is None else asdict(account.usage)
    return StoryView(events=shown_events, count=len(events), left_out=account.left_out, usage=usage)


def _card(group: Group, run: Run) -> Mapping[str, Any]:
    """The conditions of a run; those not recorded yet are the requested ones."""
    record = group.record
    names = ("name", "model", "scaffold", "identity")
    agent = {name: value for name in names if (value := getattr(record.agent, name))}
    more = {"agent_command": record.agent_command, "agent_options": record.agent_options}
    first = {"agent": agent} | {name: value for name, value in more.items() if value}
    conditions = msgspec.to_builtins(run.record.conditions) or {
        "sandbox": record.sandbox,
        "network": record.network,
        "limits": msgspec.to_builtins(record.limits),
        "profile": record.profile,
    }
    if record.origin:
        return {"origin": record.origin_words, **first, **conditions}
    if run.record.packages:
        files = run.record.packages.files
        conditions["installed"] = ", ".join(f"{file.name} {file.version}" for file in files) or "no packages"
    return {
        **first,
        **conditions,
        "machine": conditions.get("machine") or msgspec.to_builtins(record.machine),
        "mlebench": run.record.mlebench,
    }


def _code(files: AttemptFiles) -> list[CodeView]:
    """The beginnings of the first programs and texts."""
    regular = [file for file in listing(files.base, f"{files.home}{CODE}").files if file.kind is None]
    regular.sort(key=lambda file: not file.path.lower().endswith(TEXTS))  # files that people read come first
    return [
        CodeView(name=file.name, **asdict(head(files.base, f"{files.home}{CODE}/{file.path}", LONGEST_CODE)))
        for file in regular[:MOST_CODE]
    ]


def _files(site: Site, run: Run, files: AttemptFiles) -> list[FolderView]:
    """The files, folder by folder. They have addresses only if files are served."""
    folders = []
    for name in (SUBMISSION, LOGS, CODE, "snapshots", "attempts"):
        prefix = files.home if name in (SUBMISSION, LOGS, CODE) else ""
        base, inside = (run.paths.root, "") if name == "attempts" else (files.base, files.inside)
        listed = listing(base, f"{prefix}{name}")
        if listed.count:
            views = [
                FileView(
                    name=file.name,
                    size=file.size,
                    kind=file.kind,
                    url=_url(site, run, inside, f"{name}/{file.path}") if file.kind is None else None,
                )
                for file in listed.files
            ]
            folder = FolderView(
                folder=name, files=views, count=listed.count, bytes=listed.bytes, is_whole=listed.is_whole
            )
            folders.append(folder)
    return folders


def _url(site: Site, run: Run, inside: str | None, path: str) -> str | None:
    """The address of a run's file, if files are served."""
    if not site.files or inside is None or (path == RUN_LOG and not (run.paths.root / inside / path).is_file()):
        return None
    return address(run.paths.root.parent.name, run.paths.root.name, f"{inside}{path}")
