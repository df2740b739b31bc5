"""What `mlebench inspect` found about a run, as its page shows it. Records are trusted as little as code."""

from collections.abc import Iterator
from typing import Any

from mlebench.core.paths import FINDINGS
from mlebench.core.untrusted import one_line
from mlebench.records.findings import KINDS, is_about
from mlebench.records.run import ENDED
from mlebench.records.run_groups import Run
from mlebench.web.record_values import fact_rows, number_of
from mlebench.web.render import sentence
from mlebench.web.run_files import json_of, listing
from mlebench.web.views import FactRow, View

Json = dict[str, Any]  # a record, in whatever form

MOST_RECORDS, LARGEST = 20, 64 << 10  # bytes of a record
MOST_SENTENCES, MOST_QUOTES, LONGEST_QUOTE = 50, 5, 600
SHARED_CODE = "plagiarism"
LARGEST_SHARED = 1 << 20  # bytes of the record of shared code
LONGEST_TEXT = 8000  # characters of a passage
MOST_MATCHES, MOST_PASSAGES = 15, 8
WORDS = {True: "unusual", False: "usual", None: "not known"}
SAME_AGENT = "the same agent"


class Quote(View):
    place: str
    text: str


class Sentence(View):
    """A finding."""

    kind: str | None
    rule: str | None
    text: str
    quotes: list[Quote]
    more_quotes: int


class ToolFindings(View):
    """The findings of a tool, and all that its record says; only the latter if the record has another form."""

    name: str
    made_at: str | None
    sentences: list[Sentence] | None
    rows: list[FactRow]


class PassageSide(View):
    place: str
    text: str
    more: int  # lines


class Passage(View):
    tokens: float | None
    left: PassageSide
    right: PassageSide


class SharedMatch(View):
    name: str
    file: str
    agent: str | None
    word: str
    containment: float | None
    similarity: float | None
    longest: float | None
    passages: list[Passage]


class SharedCode(View):
    says: str
    threshold_says: str | None
    matches: list[SharedMatch]


def findings(run: Run) -> Iterator[ToolFindings]:
    """What each tool found about a run that has ended."""
    if run.record.state != ENDED:
        return
    separate = run.paths.finding(SHARED_CODE).name  # has a section of its own
    files = [file for file in listing(run.paths.root, FINDINGS).files if file.path != separate]
    for file in [file for file in files if file.path.endswith(".json")][:MOST_RECORDS]:
        record = json_of(run.paths.root, f"{FINDINGS}/{file.path}", LARGEST)
        values = record if isinstance(record, dict) else {"found": record}
        made_at = values.get("made_at")
        if isinstance(made_at, str) and not is_about(run.record, made_at, values.get("facts")):
            continue
        yield ToolFindings(
            name=file.name.removesuffix(".json"),
            made_at=made_at if isinstance(made_at, str) else None,
            sentences=_sentences(values),
            rows=fact_rows(values),
        )


def _sentences(record: Json) -> list[Sentence] | None:
    """The findings of a record; None if it is not one of a tool of ours."""
    items = record.get("findings")
    if not isinstance(record.get("tool"), str) or not isinstance(items, list):
        return None
    category = _dict(record.get("facts")).get("category")
    return [_sentence(finding, category) for finding in items[:MOST_SENTENCES] if isinstance(finding, dict)]


def _sentence(finding: Json, category: Any) -> Sentence:
    kind, rule, says = finding.get("kind"), finding.get("rule"), one_line(finding.get("says") or "", 1000)
    if rule == category:  # what a run is counted as; the reason follows
        says = f"{rule.replace('_', ' ')}: {says}" if isinstance(rule, str) and rule and says else says or str(rule)
    quotes = [quote for quote in _list(finding.get("evidence")) if isinstance(quote, dict)]
    return Sentence(
        kind=kind if kind in KINDS else None,
        rule=one_line(rule, 80) if rule and rule != category else None,
        text=sentence(says),
        quotes=[_quote(quote) for quote in quotes[:MOST_QUOTES]],
        more_quotes=max(0, len(quotes) - MOST_QUOTES),
    )


def _quote(quote: Json) -> Quote:
    line, text = number_of(quote.get("line")), quote.get("quote")
    text = text if isinstance(text, str) else ""
    return Quote(
        place=one_line(quote.get("file") or "", 120) + (f", line {line}" if line else ""),
        text=text[:LONGEST_QUOTE] + ("…" if len(text) > LONGEST_QUOTE else ""),
    )


def shared_code(run: Run) -> SharedCode | None:
    """What `inspect plagiarism` found; None if the run has not been inspected since it ended."""
    path = f"{FINDINGS}/{run.paths.finding(SHARED_CODE).name}"
    record = _dict(json_of(run.paths.root, path, LARGEST_SHARED, LONGEST_TEXT))
    facts, made_at = _dict(record.get("facts")), record.get("made_at")
    if not facts or (isinstance(made_at, str) and not is_about(run.record, made_at)):
        return None
    says, threshold = one_line(facts.get("says") or "", 400), facts.get("threshold_says")
    return SharedCode(
        says=f"{says[:1].upper()}{says[1:]}.",
        threshold_says=one_line(threshold, 400) if threshold else None,
        matches=[*_matches(facts.get("notebooks")), *_matches(facts.get("runs"))],
    )


def _matches(matches: Any) -> Iterator[SharedMatch]:
    for match in map(_dict, _list(matches)[:MOST_MATCHES]):
        unusual, agent = match.get("unusual"), match.get("agent")
        yield SharedMatch(
            name=one_line(match.get("name"), 120),
            file=one_line(match.get("file"), 120),
            agent=one_line(agent, 60) if agent else None,
            word="expected" if agent == SAME_AGENT else WORDS[unusual if isinstance(unusual, bool) else None],
            containment=number_of(match.get("containment")),
            similarity=number_of(match.get("similarity")),
            longest=number_of(match.get("longest")),
            passages=[_passage(_dict(passage)) for passage in _list(match.get("passages"))[:MOST_PASSAGES]],
        )


def _passage(passage: Json) -> Passage:
    return Passage(
        tokens=number_of(passage.get("tokens")),
        left=_side(_dict(passage.get("left"))),
        right=_side(_dict(passage.get("right"))),
    )


def _side(side: Json) -> PassageSide:
    text = side.get("text")
    text = text if isinstance(text, str) else ""
    cell, line, lines = (number_of(side.get(name)) for name in ("cell", "line", "lines"))
    parts = [one_line(side.get("file"), 120), f"cell {cell}" if cell else "", f"line {line}" if line else ""]
    more = max(0, int(lines or 0) - text.count("\n") - 1)
    return PassageSide(place=", ".join(part for part in parts if part), text=text, more=more)


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
