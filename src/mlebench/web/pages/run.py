"""A run: how it went, under which conditions, what its agent wrote, submitted and earned."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import msgspec

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import CODE, LOGS, RUN_LOG, RUNNER_LOG, SUBMISSION, RunPaths
from mlebench.records.report import Report
from mlebench.records.run_groups import Group, Run, elapsed
from mlebench.records.timeline import HOST, Event, shortened, story
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.scoring import Thresholds, read_leaderboard
from mlebench.web import history
from mlebench.web.draw_run import LINES
from mlebench.web.facts import fact_rows, number_of, percentile_of, result_of, usage_view
from mlebench.web.findings import findings
from mlebench.web.pages.group import title_of
from mlebench.web.pages.groups import heading_of
from mlebench.web.remains import Place, address, head, listing, short, shown, table, tail
from mlebench.web.shared_code import shared_code
from mlebench.web.site import Page, Site

LOG_END = 60_000  # bytes of the log that are shown
RUNNER_LOG_END = 8_000
MOST_CODE, LONGEST_CODE = 12, 8_000
FIRST_EVENTS, LAST_EVENTS = 150, 150  # of a story
LONGEST_EVENT, MOST_STORY = 6_000, 400_000  # characters
TEXTS = (".py", ".ipynb", ".sh", ".r", ".jl", ".md", ".txt", ".toml", ".yaml", ".yml", ".json", ".sql", ".cfg")


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
        data = {"group": heading_of(group), "run": name, "fault": shown(str(error))}
        return Page(path, "run_unreadable.html", short(name, 80), data)
    title = title_of(site, run.record.competition)
    data = _data(site, group, run) | {"title": title}
    name = title if run.record.seed is None else f"{title}, seed {run.record.seed}"
    return Page(path, "run.html", name, data, live=site.live and not run.record.is_final)


def _is_run(group: Group, where: RunPaths) -> bool:
    is_ours = group.record.origin is None and where.record.is_file()
    return is_ours or any(run.root.name == where.root.name for run in group.run_paths())


ROUTES = ((r"run/([^/]+)/([^/]+)\.html", page),)


def _data(site: Site, group: Group, run: Run) -> dict[str, Any]:
    place = Place.of(group, run)
    kept = history.kept_submissions(place)
    record = run.record
    return {
        "group": heading_of(group),
        "run": run.paths.root.name,
        "competition": short(record.competition, 80),
        "known": site.competition(record.competition) is not None,
        "seed": record.seed,
        "state": run.state,
        "ended": shown(record.ended, 40),
        "detail": shown(record.detail),
        "rerolls": record.rerolls,
        "seconds": number_of(record.seconds) if record.is_final else elapsed(run),
        "seconds_limit": group.record.limits and group.record.limits.seconds,
        "glance": _glance(site, run),
        "timeline": history.timeline(run, kept),
        "kept": kept,
        "attempt_shown": place.attempt,
        "log": tail(place.base, RUN_LOG, LOG_END).to_dict(),
        "log_url": _url(site, run, place.inside, RUN_LOG),
        "runner_log": tail(run.paths.root, RUNNER_LOG, RUNNER_LOG_END).to_dict(),
        "submission": table(place.base, f"{place.home}{SUBMISSION}/{SUBMISSION}.csv"),
        "code": _code(place),
        "files": _files(site, run, place),
        "scores": history.scores(run),
        "story": _story(run),
        "model": usage_view(run),
        "card": fact_rows(_card(group, run)),
        "report": fact_rows(msgspec.to_builtins(record.report) if record.report else {}),
        "findings": list(findings(run)),
        "shared": shared_code(run) if record.is_final else None,
    }


def _glance(site: Site, run: Run) -> dict[str, Any]:
    report = run.record.report or Report(competition_id=run.record.competition)
    thresholds, lower = _thresholds(site, run)
    numbers = ("teams", "teams_beaten", "normalised_score", "score_low", "score_high", "medal_holds", "known_issues")
    return {
        "result": result_of(run),
        "status": shown(report.status, 40),
        "reason": shown(report.reason),
        "suspicious": shown(report.suspicious),
        "score": number_of(report.score),
        "percentile": percentile_of(run, CompetitionLookup(site.registry)),
        "thresholds": thresholds,
        "lower": lower,
        **{name: getattr(report, name) for name in numbers},
    }


def _thresholds(site: Site, run: Run) -> tuple[dict[str, float] | None, bool]:
    """The thresholds that the run was, or will be, measured against."""
    report = run.record.report
    stated = {name: getattr(report, f"{name}_threshold", None) for name in LINES}
    if report and None not in stated.values():
        return {name: float(value or 0) for name, value in stated.items()}, bool(report.is_lower_better)
    competition = site.competition(run.record.competition)
    if competition is None:
        return None, False
    try:
        board = Thresholds.of(read_leaderboard(competition.leaderboard))._asdict()
    except (PrerequisiteError, ValueError):
        return None, False
    return {name: board[name] for name in LINES}, competition.lower_is_better


def _story(run: Run) -> dict[str, Any]:
    """What the agent and its model did, by their own account. What the host knows is in the timeline."""
    nothing: dict[str, Any] = {"events": [], "count": 0, "left_out": [], "usage": None}
    if not run.record.started_at:
        return nothing
    try:
        told = story(run)
    except (PrerequisiteError, OSError, ValueError) as error:
        return nothing | {"left_out": [short(error, 300)]}
    events = [event for event in told.events if event.source != HOST]
    room, shown_events = MOST_STORY, []
    zero = history.zero_of(run) or told.begun
    for event in [*events[:FIRST_EVENTS], *events[FIRST_EVENTS:][-LAST_EVENTS:]]:
        text, cut = shortened(event.text, max(200, min(LONGEST_EVENT, room)))
        room -= len(text)
        after = max(0.0, event.time - zero)  # an agent's own times are not trusted
        facts = {"kind": event.kind, "source": event.source, "title": _title(event), "step": event.step}
        shown_events.append({**facts, "after": after, "text": text, "cut": cut + event.cut})
    usage = None if told.usage is None else asdict(told.usage)
    return {"events": shown_events, "count": len(events), "left_out": told.left_out, "usage": usage}


def _title(event: Event) -> str:
    """An event's title without its kind, which is shown beside it."""
    return "" if event.title == event.kind else event.title.removeprefix(f"{event.kind}, ")


def _card(group: Group, run: Run) -> dict[str, Any]:
    """The conditions of a run; those not recorded yet are the requested ones."""
    asked = group.record
    names = ("name", "model", "scaffold", "identity")
    agent = {name: value for name in names if (value := getattr(asked.agent, name))}
    more = {"agent_command": asked.agent_command, "agent_options": asked.agent_options}
    first = {"agent": agent} | {name: value for name, value in more.items() if value}
    conditions = msgspec.to_builtins(run.record.conditions) or {
        "sandbox": asked.sandbox,
        "network": asked.network,
        "limits": msgspec.to_builtins(asked.limits),
        "profile": asked.profile,
    }
    if asked.origin:
        return {"origin": asked.origin_words, **first, **conditions}
    return {
        **first,
        **conditions,
        "machine": conditions.get("machine") or msgspec.to_builtins(asked.machine),
        "mlebench": run.record.mlebench,
    }


def _code(place: Place) -> list[dict[str, Any]]:
    """The beginnings of the first programs and texts."""
    found = [one for one in listing(place.base, f"{place.home}{CODE}").files if one["kind"] is None]
    found.sort(key=lambda one: not one["path"].lower().endswith(TEXTS))  # files that people read come first
    return [
        {"name": one["name"], **head(place.base, f"{place.home}{CODE}/{one['path']}", LONGEST_CODE).to_dict()}
        for one in found[:MOST_CODE]
    ]


def _files(site: Site, run: Run, place: Place) -> list[dict[str, Any]]:
    """The files, folder by folder. They have addresses only if files are served."""
    folders = []
    for name in (SUBMISSION, LOGS, CODE, "snapshots", "attempts"):
        prefix = place.home if name in (SUBMISSION, LOGS, CODE) else ""
        base, inside = (run.paths.root, "") if name == "attempts" else (place.base, place.inside)
        found = listing(base, f"{prefix}{name}")
        for file in found.files:
            path = f"{name}/{file.pop('path')}"
            file["url"] = _url(site, run, inside, path) if file["kind"] is None else None
        if found.count:
            folders.append({"folder": name, **found.to_dict()})
    return folders


def _url(site: Site, run: Run, inside: str | None, path: str) -> str | None:
    """The address of a run's file, if files are served."""
    if not site.files or inside is None or (path == RUN_LOG and not (run.paths.root / inside / path).is_file()):
        return None
    return address(run.paths.root.parent.name, run.paths.root.name, f"{inside}{path}")
