"""What `inspect plagiarism` found about a run, as its page shows it. Records are trusted as little as code."""

from collections.abc import Iterator
from typing import Any

from mlebench.core.paths import FINDINGS
from mlebench.records.findings import is_about
from mlebench.records.run_groups import Run
from mlebench.web.facts import number_of
from mlebench.web.remains import json_of, short

SHARED_CODE = "plagiarism"
LARGEST = 1 << 20  # bytes of a record
LONGEST_TEXT = 8000  # characters of a passage
MOST_MATCHES, MOST_PASSAGES = 15, 8
WORDS = {True: "unusual", False: "usual", None: "not known"}
SAME_AGENT = "the same agent"


def shared_code(run: Run) -> dict[str, Any] | None:
    """The findings; None if the run has not been inspected since it ended."""
    found = json_of(run.paths.root, f"{FINDINGS}/{run.paths.finding(SHARED_CODE).name}", LARGEST, LONGEST_TEXT)
    facts, made_at = _dict(_dict(found).get("facts")), _dict(found).get("made_at")
    if not facts or (isinstance(made_at, str) and not is_about(run.record, made_at)):
        return None
    matches = [*_matches(facts.get("notebooks")), *_matches(facts.get("runs"))]
    says, threshold = short(facts.get("says") or "", 400), facts.get("threshold_says")
    return {
        "says": f"{says[:1].upper()}{says[1:]}.",
        "threshold_says": short(threshold, 400) if threshold else None,
        "matches": matches,
    }


def _matches(told: Any) -> Iterator[dict[str, Any]]:
    for match in map(_dict, _list(told)[:MOST_MATCHES]):
        unusual, agent = match.get("unusual"), match.get("agent")
        word = "expected" if agent == SAME_AGENT else WORDS.get(unusual if isinstance(unusual, bool) else None)
        yield {
            "name": short(match.get("name"), 120),
            "file": short(match.get("file"), 120),
            "agent": short(agent, 60) if agent else None,
            "word": word,
            **{name: number_of(match.get(name)) for name in ("containment", "similarity", "longest")},
            "passages": [_passage(_dict(one)) for one in _list(match.get("passages"))[:MOST_PASSAGES]],
        }


def _passage(told: dict[str, Any]) -> dict[str, Any]:
    sides = {name: _side(_dict(told.get(name))) for name in ("left", "right")}
    return {"tokens": number_of(told.get("tokens")), **sides}


def _side(told: dict[str, Any]) -> dict[str, Any]:
    text = told.get("text")
    text = text if isinstance(text, str) else ""
    cell, line, lines = (number_of(told.get(name)) for name in ("cell", "line", "lines"))
    place = [short(told.get("file"), 120), f"cell {cell}" if cell else "", f"line {line}" if line else ""]
    more = max(0, int(lines or 0) - text.count("\n") - 1)
    return {"place": ", ".join(part for part in place if part), "text": text, "more": more}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
