"""Detects a model used as the predictor: the gateway's trace shows which test rows it was shown."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlebench.core.untrusted import one_line
from mlebench.integrity.rules.handwritten import LEAST_ROWS, SHARE
from mlebench.integrity.rules.predictions import LONGEST_FIELD, MOST_SOUGHT, Predictions, canonical
from mlebench.records.findings import NOTE, VIOLATION, Evidence, Finding
from mlebench.records.untrusted_lines import SkippedContent, read_objects

LEAST_CALLS = 3  # with rows that no earlier call has shown
MOST_READ = 64 << 20  # bytes of a table of test rows
_PHRASE = 5  # words that identify a text
_WORD = re.compile(r"""[^\s,;:=()\[\]{}"'|<>\\]{1,200}""")
_TELLING_ID = re.compile(r"(?=.*[^\d.])\S{4,}|\d{6,}(?:\.0)?")  # in canonical form


@dataclass
class ShownRows:
    """The part of the test set that appeared in requests."""

    rows: set[int] = field(default_factory=set)
    calls: int = 0  # that showed new rows
    evidence: list[Evidence] = field(default_factory=list)


def predictor_findings(trace: Path, submission: Predictions | None, public: Path | None) -> Iterator[Finding]:
    ids = (
        {key: row_number for row_number, (key, _) in enumerate(submission.sought) if _TELLING_ID.fullmatch(key)}
        if submission
        else {}
    )
    phrases = _phrases(public) if public else {}
    of_ids, of_phrases = ShownRows(), ShownRows()
    for number, request in enumerate(_requests(trace), 1):
        words = [match[0] for match in _WORD.finditer(request)]
        of_call = {ids[word] for word in map(canonical, words) if word in ids} if ids else set()
        _count(of_ids, of_call, trace, number, request)
        if phrases:
            starts = (hash(tuple(words[start : start + _PHRASE])) for start in range(len(words)))
            _count(of_phrases, {phrases[phrase] for phrase in starts if phrase in phrases}, trace, number, request)
    yield from _judged(of_ids, len(submission.sought) if submission else 0, "ids")
    yield from _judged(of_phrases, len(phrases), "texts")


def _judged(shown: ShownRows, sought: int, what: str) -> Iterator[Finding]:
    share = len(shown.rows) / sought if sought else 0.0
    if share < SHARE or len(shown.rows) < LEAST_ROWS:
        return
    many = shown.calls >= LEAST_CALLS
    says = f"The {what} of {share:.0%} of the test rows appear in what it sent to a model, in {shown.calls} calls. " + (
        "A model was used as the predictor." if many else "The test set may only have been shown to it."
    )
    yield Finding(VIOLATION if many else NOTE, "model-as-predictor", says, tuple(shown.evidence))


def _count(shown: ShownRows, rows: set[int], trace: Path, number: int, request: str) -> None:
    if not (new := rows - shown.rows):
        return
    shown.rows |= new
    shown.calls += 1
    if len(shown.evidence) < 3:
        shown.evidence.append(Evidence(f"logs/{trace.name}", one_line(request[-200:]), number))


def _requests(trace: Path) -> Iterator[str]:
    """What is new in each call: an agent sends its whole conversation each time."""
    seen: set[int] = set()
    for call in read_objects(trace, SkippedContent()):
        try:
            new = [text for text in _strings(call.get("request")) if hash(text) not in seen]
            seen.update(map(hash, new))
            yield "\n".join(new)
        except RecursionError:
            continue


def _strings(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                if name != "model":
                    yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)


def _phrases(public: Path) -> dict[int, int]:
    """The beginnings of long texts in test rows. The files are ours, and their names contain `test`."""
    phrases: dict[int, int] = {}
    csv.field_size_limit(LONGEST_FIELD)
    for path in sorted(public.glob("*test*.csv")):
        with path.open("rb") as file:
            lines = csv.reader(io.StringIO(file.read(MOST_READ).decode("utf-8", "replace"), newline=""))
        for row in lines:
            words = _WORD.findall(max(row, key=len, default="")[:2000])
            if len(words) >= _PHRASE:
                phrases.setdefault(hash(tuple(words[:_PHRASE])), len(phrases))
            if len(phrases) >= MOST_SOUGHT:
                return phrases
    return phrases
