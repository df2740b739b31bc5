"""A run's timeline as text: a line for each event, and below it the first few lines of its text."""

from collections.abc import Iterator

from mlebench.cli.quantities import duration_text
from mlebench.records.timeline import AGENT, GATEWAY, Timeline, TimelineEvent

MOST_LINES = 12  # of a text
WIDEST = 160  # characters of a line


def timeline_lines(timeline: Timeline, most: int = MOST_LINES) -> Iterator[str]:
    has_thoughts = any(event.source == AGENT and event.kind == "thought" for event in timeline.events)
    for event in timeline.events:
        step = "" if event.step is None else f"step {event.step}"
        kind = f"{event.kind}: " if event.kind in ("call", "action", "validation") else ""  # the title does not say
        yield f"{duration_text(max(0.0, event.time - timeline.begun)):>9}  {step:<9} {kind}{event.title}"
        # The agent usually repeats what the model said, but the gateway's copy is the one to trust, so a little stays.
        shown = min(most, 2) if has_thoughts and event.source == GATEWAY else most
        yield from (f"{'':<11}  {line}".rstrip() for line in _excerpt(event, shown))
    if timeline.usage:
        yield ""
        yield f"Model calls, according to the {timeline.usage.source}: {_usage_text(timeline)}"
    for item in timeline.left_out:
        yield f"Left out: {item}"


def _excerpt(event: TimelineEvent, most: int) -> list[str]:
    lines = [line[:WIDEST] + (" …" if len(line) > WIDEST else "") for line in event.text.strip().split("\n")]
    if lines == [""]:
        return []
    if len(lines) > most:
        half = most // 2
        lines[half : len(lines) - half] = [f"… {len(lines) - 2 * half} lines …"]
    return lines


def _usage_text(timeline: Timeline) -> str:
    usage = timeline.usage
    if usage is None:
        return "none"
    named = {
        "tokens in": usage.input_tokens,
        "of them cached": usage.cached_tokens,
        "tokens out": usage.output_tokens,
        "of them reasoning": usage.reasoning_tokens,
    }
    parts = [f"{usage.calls} calls", *(f"{value} {name}" for name, value in named.items() if value is not None)]
    partial = "at least " if usage.is_lower_bound else ""
    return ", ".join([*parts, "cost unknown" if usage.cost is None else f"{partial}${usage.cost:.4f}"])
