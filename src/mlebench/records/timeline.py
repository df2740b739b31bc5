"""The timeline of a run: its agent's own account, its model calls and its submissions, in chronological order.

docs/reference/trajectories.md describes the lines that an agent may write. All of it is hostile: it is read within
bounds, and anything in an event is safe to show as text. An agent's times count only within the run's own.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.outcomes import GRADED
from mlebench.core.paths import LOGS, RunPaths, model_calls, trajectory
from mlebench.core.untrusted import plain
from mlebench.records.base import seconds_of
from mlebench.records.run import RUNNING
from mlebench.records.run_groups import Group, Run, usage_so_far
from mlebench.records.untrusted_lines import LONGEST_LINE, SkippedContent, as_json, number, parsed, read_objects, title
from mlebench.records.usage import ModelUsage

MOST_EVENTS = 50_000  # of one kind of source
LONGEST_TEXT = 100_000  # characters kept of a text, half from its beginning and half from its end
AGENT, GATEWAY, HOST = "agent", "gateway", "host"
TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")

Line = dict[str, Any]


@dataclass(frozen=True)
class TimelineEvent:
    """One thing that happened. Texts hold no control characters, and facts are numbers or short texts."""

    time: float  # seconds since the epoch
    kind: str
    source: str  # who says so: the agent, the gateway or the host
    title: str
    step: int | None = None
    text: str = ""
    cut: int = 0  # characters left out of the middle of the text
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CallTotals:
    """Model calls, added up; None if unknown."""

    source: str
    calls: int = 0
    input_tokens: float | None = None
    cached_tokens: float | None = None
    output_tokens: float | None = None
    reasoning_tokens: float | None = None
    cost: float | None = None
    is_lower_bound: bool = False  # some calls are not in these figures


@dataclass(frozen=True)
class Timeline:
    begun: float  # when the attempt that counts began
    events: list[TimelineEvent]
    usage: CallTotals | None  # the gateway's count, or else the agent's
    left_out: list[str]  # what is missing, in words

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_timeline(run: Run) -> Timeline:
    """Return the timeline of a run's last attempt, so far."""
    group = Group.read(run.paths.group.root)
    folders = _run_folders(run)
    begun = _seconds(run.record.started_at or run.record.planned_at)
    ended = _seconds(run.record.ended_at) if run.record.ended_at else float("inf")
    left_out: list[str] = []
    agent_events = _read(trajectory(folders.logs), _agent_event, left_out)
    calls: list[TimelineEvent] = []
    if group.record.network == "model":  # otherwise a file of that name is the agent's own
        calls = _read(model_calls(folders.calls), _gateway_event, left_out)
        agent_events = [event for event in agent_events if event.kind != "call"]
    events = [
        *_in_order(agent_events, begun, ended),
        *(replace(call, time=min(max(call.time, begun), ended)) for call in calls),
        *_submissions(folders.snapshots, _seconds(run.record.agent_started_at or run.record.planned_at)),
        *_outcome(run, begun),
    ]
    agent_calls = [event for event in agent_events if event.kind == "call"]
    usage = _totals_of_agent(agent_calls) if agent_calls else _totals_of_gateway(usage_so_far(run))
    return Timeline(begun, sorted(events, key=lambda event: event.time), usage, left_out)


class _RunFolders(NamedTuple):
    """The folders that hold the agent's logs, the gateway's trace, and snapshots of the submission."""

    logs: Path
    calls: Path
    snapshots: Path


def _run_folders(run: Run) -> _RunFolders:
    """During an attempt, its files are in its working folder."""
    attempts = run.record.attempts
    if run.record.state != RUNNING or not attempts:
        return _RunFolders(run.paths.logs, run.paths.logs, run.paths.snapshots)
    work = run.paths.group.work(attempts[-1].token)
    return _RunFolders(work / "home" / LOGS, work, RunPaths(work).snapshots)


def _seconds(text: str | None) -> float:
    """A time of a record, in seconds since the epoch; 0 if it is unknown."""
    return seconds_of(text) or 0.0


def _read(path: Path, event_of: Callable[[Line], TimelineEvent], left_out: list[str]) -> list[TimelineEvent]:
    omitted = SkippedContent()
    lines = read_objects(path, omitted)
    events = []
    for line in islice(lines, MOST_EVENTS):
        try:
            events.append(event_of(line))
        except RecursionError:
            omitted.lines += 1
    if next(lines, None) is not None:
        left_out.append(f"{path.name}: all lines after the first {MOST_EVENTS}")
    if omitted.lines:
        left_out.append(f"{path.name}: {omitted.lines} lines that are not JSON objects, too long or too deeply nested")
    if omitted.bytes:
        left_out.append(f"{path.name}: its last {omitted.bytes} bytes")
    if omitted.fault:
        left_out.append(f"{path.name}, which {omitted.fault}")
    return events


def _in_order(events: Iterable[TimelineEvent], begun: float, ended: float) -> Iterator[TimelineEvent]:
    """The order of lines counts: a time that goes back, or is outside the run, becomes that of the line before."""
    last = begun
    for event in events:
        last = min(max(last, event.time), ended)
        yield replace(event, time=last)


def lines_in(content: bytes) -> Iterator[tuple[int, Line | None]]:
    """The lines of (part of) a trajectory or trace, with their numbers; None for one that is not an object."""
    for line_number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            value = parsed(line) if len(line) <= LONGEST_LINE else None
            yield line_number, value if isinstance(value, dict) else None


# The agent's own account


def _agent_event(line: Line) -> TimelineEvent:
    kind = title(line.get("kind"), 40) or "unknown"
    known = KINDS.get(kind)
    keys = known.keys if known else ()
    text, cut = truncate_text(_text(line.get("text")) if known else _further_fields(line, ("kind", "time", "step")))
    if known and (further := _further_fields(line, ("kind", "time", "step", "text", *keys))):
        text, cut = truncate_text(f"{text}\n{further}".strip("\n"))
    facts = {key: _fact(line.get(key)) for key in keys if line.get(key) is not None}
    step = number(line.get("step"))
    return TimelineEvent(
        time=number(line.get("time")) or 0.0,
        kind=kind,
        source=AGENT,
        title=known.title(facts) if known else kind,
        step=None if step is None else int(step),
        text=text,
        cut=cut,
        facts=facts,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else as_json(value)


def _further_fields(line: Line, skipped: Iterable[str]) -> str:
    """What a line has beyond the keys shown elsewhere: one key and its value per line."""
    return "\n".join(
        f"{key}: {_text(value)}" for key, value in line.items() if key not in skipped and value is not None
    )


def _fact(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    number_value = number(value)
    return title(value) if number_value is None else number_value


def truncate_text(text: str, longest: int = LONGEST_TEXT) -> tuple[str, int]:
    """A text that is safe to show, without its middle if it is long, and how many characters were cut."""
    cut = max(0, len(text) - longest)
    if cut:
        half = longest // 2
        return f"{plain(text[:half])}\n… {cut} characters …\n{plain(text[-half:])}", cut
    return plain(text), 0


@dataclass(frozen=True)
class _EventKind:
    keys: tuple[str, ...]
    title: Callable[[Line], str]


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _timed(facts: Line) -> str | None:
    seconds = facts.get("seconds")
    return f"{seconds:.1f} s" if isinstance(seconds, int | float) else None


def _call_title(facts: Line) -> str:
    known = {name: facts[name] for name in (*TOKENS, "cost") if isinstance(facts.get(name), int | float)}
    cached, reasoning = known.get("cached_tokens"), known.get("reasoning_tokens")
    consumed = f"{known['input_tokens']} tokens in" if "input_tokens" in known else None
    produced = f"{known['output_tokens']} out" if "output_tokens" in known else None
    return _joined(
        str(facts.get("model") or "a model"),
        f"status {facts['status']}" if facts.get("status") not in (None, 200) else None,
        f"{consumed} ({cached} cached)" if consumed and cached else consumed,
        f"{produced} ({reasoning} reasoning)" if produced and reasoning else produced,
        f"${known['cost']:.4f}" if "cost" in known else None,
        _timed(facts),
    )


def _validation_title(facts: Line) -> str:
    value = facts.get("value")
    directions: dict[object, str] = {True: "higher is better", False: "lower is better"}
    direction = directions.get(facts.get("higher_is_better"))
    named = f"{facts.get('metric') or 'validation'} = {'unknown' if value is None else value}"
    return f"{named} ({direction})" if direction else named


KINDS = {
    "start": _EventKind(("agent", "model"), lambda facts: _joined(*(f"{key} {facts[key]}" for key in facts))),
    "thought": _EventKind((), lambda _: "thought"),
    "action": _EventKind(("name",), lambda facts: str(facts.get("name", "action"))),
    "output": _EventKind(
        ("exit_code", "seconds"),
        lambda facts: _joined(
            "output", f"exit code {facts['exit_code']}" if "exit_code" in facts else None, _timed(facts)
        ),
    ),
    "call": _EventKind(("model", *TOKENS, "cost", "seconds"), _call_title),
    "validation": _EventKind(("metric", "value", "higher_is_better"), _validation_title),
    "submission": _EventKind(("path",), lambda facts: f"submission {facts.get('path', '')}".strip()),
    "end": _EventKind(
        ("reason", "starts"), lambda facts: f"the agent ends: {facts.get('reason', 'it does not say why')}"
    ),
}


# What the gateway and the host know


def _gateway_event(line: Line) -> TimelineEvent:
    keys = ("model", "status", *TOKENS, "cost", "seconds", "retries", "error")
    facts = {key: _fact(line[key]) for key in keys if line.get(key) is not None}
    text, cut = truncate_text("\n".join(filter(None, [said(line.get("answer")), _text(line.get("error"))])))
    return TimelineEvent(number(line.get("time")) or 0.0, "call", GATEWAY, _call_title(facts), None, text, cut, facts)


def said(answer: Any) -> str:
    """The words and tool calls of a model's answer, in any API's form."""
    match answer:
        case str():
            return answer
        case list():
            return "\n".join(filter(None, map(said, answer)))
        case (
            {"name": str(name), "arguments": arguments}
            | {"name": str(name), "input": arguments}
            | {"name": str(name), "args": arguments}
        ):
            return f"{name} {_text(arguments)}"
        case dict():
            parts = ("choices", "candidates", "message", "output", "content", "parts", "text", "tool_calls")
            parts += ("function", "functionCall", "error")
            return "\n".join(filter(None, (said(answer.get(part)) for part in parts)))
    return ""


def _totals_of_agent(calls: list[TimelineEvent]) -> CallTotals:
    """What the agent's lines add up to."""
    sums: dict[str, Any] = {}
    for name in (*TOKENS, "cost"):
        known = [call.facts[name] for call in calls if isinstance(call.facts.get(name), int | float)]
        sums[name] = sum(known) if known else None
    partial = any(call.facts.get("cost") is None for call in calls)
    return CallTotals(AGENT, len(calls), **sums, is_lower_bound=partial)


def _totals_of_gateway(usage: ModelUsage | None) -> CallTotals | None:
    """What the gateway counted, which is right even if its trace was cut short."""
    if usage is None:
        return None
    figures = {name: getattr(usage, name) for name in (*TOKENS, "cost")}
    return CallTotals(GATEWAY, usage.calls, **figures, is_lower_bound=usage.is_lower_bound)


def _submissions(folder: Path, agent_began: float) -> Iterator[TimelineEvent]:
    """The states of the submission that were kept during the run. Their names are seconds since the agent's start."""
    for path in sorted(folder.glob("*.csv")):
        try:
            size, after = path.stat().st_size, float(path.stem)
        except (OSError, ValueError):  # just now removed to make room for others
            continue
        facts = {"path": path.name, "bytes": size}
        yield TimelineEvent(agent_began + after, "submission", HOST, f"submission of {size} bytes", facts=facts)


def _outcome(run: Run, begun: float) -> Iterator[TimelineEvent]:
    record = run.record
    if record.started_at:
        yield TimelineEvent(begun, "start", HOST, f"the run begins: {record.competition}, seed {record.seed}")
    if record.is_final and record.ended_at:
        status = record.report and record.report.status
        graded = f"score {record.report.score}" if record.report and status == GRADED else status
        text, cut = truncate_text(record.detail or "")
        title_of_end = _joined(f"the run ends: {record.ended}", graded)
        yield TimelineEvent(_seconds(record.ended_at), "end", HOST, title_of_end, text=text, cut=cut)
