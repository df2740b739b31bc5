"""Hand-written predictions: rows of the submission that appear literally in what the agent wrote.

A row appears if its id is followed by its predictions (`42,0.5` or `"42": 0.5`), or if its prediction is part of a
long literal list in the submission's order. Rows that the sample submission also has prove nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mlebench.core.untrusted import plain
from mlebench.integrity.agent_texts import AgentText
from mlebench.integrity.rules.predictions import Predictions, canonical
from mlebench.records.findings import Evidence

SHARE = 0.2  # of the rows
LEAST_ROWS = 5  # fewer may be a quoted head of a file
LIST = 30  # predictions in a row that cannot be coincidence
LEAST_MINORITY = 5  # how many of these must differ from the most frequent one
_COMPARED = 8  # words of a prediction
_WORD = re.compile(r"""[^\s,;:=()\[\]{}"'|<>\\]{1,200}""")
_BETWEEN = re.compile(r"""["']?[ \t]*(?:[,;:|\t]|=>|\s)[ \t]*\[?[ \t]*["']?""")
_LONGEST_BETWEEN = 8
_QUOTED = 160  # characters
_MOST_COLUMNS = 4  # of predictions, to look for as lists


@dataclass
class LiteralRows:
    """Which of the wanted rows appear in texts, and where the first ones do."""

    sought: int
    rows: set[int] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def share(self) -> float:
        return len(self.rows) / self.sought if self.sought else 0.0

    @property
    def is_distinctive(self) -> bool:
        return self.share >= SHARE and len(self.rows) >= min(LEAST_ROWS, self.sought)


class _Word(NamedTuple):
    text: str  # canonical
    start: int
    end: int


def find_rows(texts: Iterable[AgentText], submission: Predictions, sample: Predictions | None) -> LiteralRows:
    known = set(sample.sought) if sample else set()
    by_id: dict[str, tuple[int, tuple[str, ...]]] = {}
    for row_number, row in enumerate(submission.sought):
        if row not in known:
            by_id[row[0]] = (row_number, _words_of(row[1]))
    by_ids, in_lists = LiteralRows(len(submission.sought)), LiteralRows(submission.rows)
    lists = [(set(column), _windows(column)) for column in submission.columns[:_MOST_COLUMNS]]
    for text in texts:
        words = list(_words(text.text))
        _match_ids(text, words, by_id, by_ids)
        for values, starts in lists:
            _match_lists(text, words, values, starts, in_lists)
    return max(by_ids, in_lists, key=lambda rows: (rows.is_distinctive, rows.share))


def _words(text: str) -> Iterator[_Word]:
    # An escaped line break in a string ends a word; the text keeps its length, so that offsets stay right.
    for match in _WORD.finditer(text.replace("\\n", " \n").replace("\\t", " \t")):
        yield _Word(canonical(match[0]), match.start(), match.end())


def _words_of(predicted: tuple[str, ...]) -> tuple[str, ...]:
    words = [word.text for cell in predicted for word in _words(cell[:2000])]
    return tuple(words[:_COMPARED])


def _match_ids(
    text: AgentText, words: list[_Word], by_id: dict[str, tuple[int, tuple[str, ...]]], literal_rows: LiteralRows
) -> None:
    for number, word in enumerate(words):
        row = by_id.get(word.text)
        if row is None or not row[1] or row[0] in literal_rows.rows:
            continue
        follow = words[number + 1 : number + 1 + len(row[1])]
        if tuple(following.text for following in follow) == row[1] and _belong_together(text.text, word, follow[0]):
            literal_rows.rows.add(row[0])
            _quote(text, word.start, literal_rows)


def _belong_together(text: str, key: _Word, value: _Word) -> bool:
    """Whether a word is given as the value of the one before. A short id looks like any number, so it needs more."""
    between = text[key.end : value.start].replace("\\n", "\n")
    if len(between) > _LONGEST_BETWEEN or not _BETWEEN.fullmatch(between) or "\n" in between:
        return False
    if len(key.text) > 5 or not key.text[0].isdigit():  # canonical numbers end with `.0`
        return True
    before = text[max(0, key.start - 2) : key.start]
    return ":" in between or before.endswith(("(", "[", "\n", "\\n", '"', "'")) or not before


def _windows(column: list[str]) -> dict[int, int]:
    """Where each stretch of the column begins, by its hash; nearly constant stretches are left out."""
    starts: dict[int, int] = {}
    counts: dict[str, int] = {}
    for end, value in enumerate(column):
        counts[value] = counts.get(value, 0) + 1
        if end >= LIST:
            counts[column[end - LIST]] -= 1
        start = end - LIST + 1
        if start >= 0 and (LIST - max(counts.values()) >= LEAST_MINORITY if len(counts) < 100 else True):
            starts.setdefault(hash(tuple(column[start : end + 1])), start)
        if len(counts) >= 100:
            counts = {frequent: count for frequent, count in counts.items() if count}
    return starts


def _match_lists(
    text: AgentText, words: list[_Word], values: set[str], starts: dict[int, int], literal_rows: LiteralRows
) -> None:
    stretch = 0  # how many words up to here are values of the column
    for number, word in enumerate(words):
        stretch = stretch + 1 if word.text in values else 0
        if stretch < LIST:
            continue
        first = number - LIST + 1
        start = starts.get(hash(tuple(value.text for value in words[first : number + 1])))
        if start is not None and start + LIST - 1 not in literal_rows.rows:
            literal_rows.rows.update(range(start, start + LIST))
            _quote(text, words[first].start, literal_rows)


def _quote(text: AgentText, offset: int, literal_rows: LiteralRows) -> None:
    if len(literal_rows.evidence) < 3:
        begin = text.text.rfind("\n", max(0, offset - _QUOTED), offset) + 1 or max(0, offset - 20)
        quote = " ".join(plain(text.text[begin : begin + _QUOTED]).split("\n")[:1])
        literal_rows.evidence.append(Evidence(text.file, quote, text.line_at(offset)))
