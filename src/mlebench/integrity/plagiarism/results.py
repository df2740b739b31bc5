"""What was found about a run, as a record and as rows. It says what is shared, never who took it from whom."""

from collections.abc import Iterable, Iterator
from typing import Any

from mlebench.core.untrusted import plain
from mlebench.integrity.plagiarism.comparison import OTHER_AGENT, SAME_AGENT, CodeComparison, Match, is_comparable
from mlebench.records.findings import NOTE, Evidence, Finding, Findings

TOOL = "plagiarism"
MOST_UNREAD = 20
LONGEST_QUOTE = 400


def record_of(comparison: CodeComparison) -> Findings:
    notebooks = comparison.notebooks
    threshold = notebooks.corpus.threshold
    facts: dict[str, Any] = {
        "says": summary(comparison),
        "corpus": {
            "name": notebooks.name,
            "files": len(notebooks.reads),
            "unrelated": notebooks.corpus.family_count,
            "unread": len(notebooks.unread),
            "missing": notebooks.missing,
        },
        "threshold": threshold.value,
        "threshold_says": notebooks.missing or threshold.says,
        "code": {
            "files": len(comparison.read),
            "fingerprints": sum(len(read.hashes) for read in comparison.read),
            "boilerplate": comparison.boilerplate,
            "unread": [f"{plain(read.name)} {read.fault}" for read in comparison.files if read.fault][:MOST_UNREAD],
            "cut": [plain(read.name) for read in comparison.read if read.cut][:MOST_UNREAD],
            "left_out": comparison.left_out,
        },
        "notebooks": [_match(comparison, match) for match in comparison.closest],
        "runs": [{**_match(comparison, match), "agent": match.agent} for match in comparison.runs],
    }
    return Findings.of(TOOL, list(_findings(comparison)), **facts)


def _match(comparison: CodeComparison, match: Match) -> dict[str, Any]:
    threshold = comparison.notebooks.corpus.threshold
    return {
        "name": plain(match.name),
        "file": plain(match.file.name),
        "other_file": plain(match.other.name),
        "containment": round(match.containment, 4),
        "similarity": round(match.similarity, 4),
        "shared": match.shared,
        "longest": match.longest,
        "unusual": is_unusual(comparison, match),
        "notebooks_as_close": threshold.as_much(match.containment) if len(threshold.nearest) else None,
        "of_notebooks": len(threshold.nearest) or None,
        "passages": list(match.passages),
    }


def is_unusual(comparison: CodeComparison, match: Match) -> bool | None:
    """Whether unrelated code shares less; None if that is unknown, or if both runs are of one agent."""
    value = comparison.notebooks.corpus.threshold.value
    if value is None or match.agent not in (None, OTHER_AGENT):
        return None
    return match.containment > value


def _findings(comparison: CodeComparison) -> Iterator[Finding]:
    for match in (*comparison.closest, *comparison.runs):
        if is_unusual(comparison, match):
            with_whom = f"the run {plain(match.name)} of another agent" if match.agent else plain(match.name)
            says = (
                f"{match.containment:.0%} of the fingerprints of {plain(match.file.name)} are also in {with_whom}. "
                f"{_how_unusual(comparison, match)}"
            )
            quotes = [
                Evidence(side["file"], side["text"][:LONGEST_QUOTE], side["line"])
                for passage in match.passages[:1]
                for side in (passage["left"], passage["right"])
            ]
            yield Finding(NOTE, "shared-with-run" if match.agent else "shared-with-notebook", says, tuple(quotes))


def _how_unusual(comparison: CodeComparison, match: Match) -> str:
    threshold = comparison.notebooks.corpus.threshold
    count = threshold.as_much(match.containment)
    return f"Of {len(threshold.nearest):,} notebooks that are not copies, {count:,} share as much with another."


def summary(comparison: CodeComparison) -> str:
    """The finding in a sentence."""
    if not comparison.files:
        return "there is no code"
    if not is_comparable(comparison):
        return "there is too little code to be compared"
    if not comparison.closest:
        return "not compared with notebooks" if comparison.notebooks.missing else "nothing but boilerplate is shared"
    match = comparison.closest[0]
    unusual = is_unusual(comparison, match)
    word = "unusual" if unusual else "as unrelated code may" if unusual is False else "too few notebooks to say if much"
    return f"{match.containment:.0%} of {plain(match.file.name)} is also in {plain(match.name)}: {word}"


def notebook_rows(compared: Iterable[CodeComparison]) -> Iterator[list[Any]]:
    for comparison in compared:
        start = [comparison.subject.name, comparison.subject.competition]
        if not comparison.closest:
            yield [*start, None, None, None, None, None, summary(comparison)]
            continue
        match = comparison.closest[0]
        word = {True: "unusual", False: "usual", None: "not known"}[is_unusual(comparison, match)]
        yield [*start, match.file.name, match.name, *_figures(match), word]


def run_rows(compared: Iterable[CodeComparison]) -> Iterator[list[Any]]:
    """The closest run of each kind."""
    for comparison in compared:
        for kind in dict.fromkeys(match.agent for match in comparison.runs):
            match = next(match for match in comparison.runs if match.agent == kind)
            unusual = is_unusual(comparison, match)
            word = "expected" if kind == SAME_AGENT else {True: "unusual", False: "usual", None: "not known"}[unusual]
            yield [comparison.subject.name, match.name, kind, match.file.name, *_figures(match), word]


def _figures(match: Match) -> list[Any]:
    return [f"{match.containment:.0%}", f"{match.similarity:.0%}", match.longest]
