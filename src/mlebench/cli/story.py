"""The story of a run as text: a line for each event, and below it the first few lines of its text."""

from collections.abc import Iterator

from mlebench.cli.output import duration_text
from mlebench.records.timeline import AGENT, GATEWAY, Event, Story

MOST_LINES = 12  # of a text
WIDEST = 160  # characters of a line


def story_lines(story: Story, most: int = MOST_LINES) -> Iterator[str]:
    told = any(event.source == AGENT and event.kind == "thought" for event in story.events)
    for event in story.events:
        step = "" if event.step is None else f"step {event.step}"
        yield f"{duration_text(max(0.0, event.time - story.begun)):>9}  {step:<9} {_mark(event)}{event.title}"
        # The agent usually repeats what the model said, but the gateway's copy is the one to trust, so a little stays.
        shown = min(most, 2) if told and event.source == GATEWAY else most
        yield from (f"{'':<11}  {line}".rstrip() for line in _excerpt(event, shown))
    if story.usage:
        yield ""
        yield f"Model calls, according to the {story.usage.source}: {_usage_text(story)}"
    for item in story.left_out:
        yield f"Left out: {item}"


def _mark(event: Event) -> str:
    """A mark for what the title does not say."""
    return f"{event.kind}: " if event.kind in ("call", "action", "validation") else ""


def _excerpt(event: Event, most: int) -> list[str]:
    lines = [line[:WIDEST] + (" …" if len(line) > WIDEST else "") for line in event.text.strip().split("\n")]
    if lines == [""]:
        return []
    if len(lines) > most:
        half = most // 2
        lines[half : len(lines) - half] = [f"… {len(lines) - 2 * half} lines …"]
    return lines


def _usage_text(story: Story) -> str:
    usage = story.usage
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
