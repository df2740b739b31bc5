"""What was found about a run, as a record and as rows. It says what is shared, never who took it from whom."""

from collections.abc import Iterable, Iterator
from typing import Any

from mlebench.core.untrusted import plain
from mlebench.integrity.plagiarism.compare import OTHER_AGENT, SAME_AGENT, Compared, Match, is_comparable
from mlebench.records.findings import NOTE, Evidence, Finding, Findings

TOOL = "plagiarism"
MOST_UNREAD = 20
LONGEST_QUOTE = 400


def record_of(found: Compared) -> Findings:
    notebooks = found.notebooks
    threshold = notebooks.corpus.threshold
    facts: dict[str, Any] = {
        "says": summary(found),
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
            "files": len(found.read),
            "fingerprints": sum(len(read.hashes) for read in found.read),
            "boilerplate": found.boilerplate,
            "unread": [f"{plain(read.name)} {read.fault}" for read in found.files if read.fault][:MOST_UNREAD],
            "cut": [plain(read.name) for read in found.read if read.cut][:MOST_UNREAD],
            "left_out": found.left_out,
        },
        "notebooks": [_match(found, match) for match in found.closest],
        "runs": [{**_match(found, match), "agent": match.agent} for match in found.runs],
    }
    return Findings.of(TOOL, list(_findings(found)), **facts)


def _match(found: Compared, match: Match) -> dict[str, Any]:
    threshold = found.notebooks.corpus.threshold
    return {
        "name": plain(match.name),
        "file": plain(match.file.name),
        "other_file": plain(match.other.name),
        "containment": round(match.containment, 4),
        "similarity": round(match.similarity, 4),
        "shared": match.shared,
        "longest": match.longest,
        "unusual": is_unusual(found, match),
        "notebooks_as_close": threshold.as_much(match.containment) if len(threshold.nearest) else None,
        "of_notebooks": len(threshold.nearest) or None,
        "passages": list(match.passages),
    }


def is_unusual(found: Compared, match: Match) -> bool | None:
    """Whether unrelated code shares less; None if that is unknown, or if both runs are of one agent."""
    value = found.notebooks.corpus.threshold.value
    if value is None or match.agent not in (None, OTHER_AGENT):
        return None
    return match.containment > value


def _findings(found: Compared) -> Iterator[Finding]:
    for match in (*found.closest, *found.runs):
        if is_unusual(found, match):
            with_whom = f"the run {plain(match.name)} of another agent" if match.agent else plain(match.name)
            says = (
                f"{match.containment:.0%} of the fingerprints of {plain(match.file.name)} are also in {with_whom}. "
                f"{_how_unusual(found, match)}"
            )
            quotes = [
                Evidence(side["file"], side["text"][:LONGEST_QUOTE], side["line"])
                for passage in match.passages[:1]
                for side in (passage["left"], passage["right"])
            ]
            yield Finding(NOTE, "shared-with-run" if match.agent else "shared-with-notebook", says, tuple(quotes))


def _how_unusual(found: Compared, match: Match) -> str:
    threshold = found.notebooks.corpus.threshold
    count = threshold.as_much(match.containment)
    return f"Of {len(threshold.nearest):,} notebooks that are not copies, {count:,} share as much with another."


def summary(found: Compared) -> str:
    """The finding in a sentence."""
    if not found.files:
        return "there is no code"
    if not is_comparable(found):
        return "there is too little code to be compared"
    if not found.closest:
        return "not compared with notebooks" if found.notebooks.missing else "nothing but boilerplate is shared"
    match = found.closest[0]
    unusual = is_unusual(found, match)
    word = "unusual" if unusual else "as unrelated code may" if unusual is False else "too few notebooks to say if much"
    return f"{match.containment:.0%} of {plain(match.file.name)} is also in {plain(match.name)}: {word}"


def notebook_rows(compared: Iterable[Compared]) -> Iterator[list[Any]]:
    for found in compared:
        start = [found.subject.name, found.subject.competition]
        if not found.closest:
            yield [*start, None, None, None, None, None, summary(found)]
            continue
        match = found.closest[0]
        word = {True: "unusual", False: "usual", None: "not known"}[is_unusual(found, match)]
        yield [*start, match.file.name, match.name, *_figures(match), word]


def run_rows(compared: Iterable[Compared]) -> Iterator[list[Any]]:
    """The closest run of each kind."""
    for found in compared:
        for kind in dict.fromkeys(match.agent for match in found.runs):
            match = next(match for match in found.runs if match.agent == kind)
            unusual = is_unusual(found, match)
            word = "expected" if kind == SAME_AGENT else {True: "unusual", False: "usual", None: "not known"}[unusual]
            yield [found.subject.name, match.name, kind, match.file.name, *_figures(match), word]


def _figures(match: Match) -> list[Any]:
    return [f"{match.containment:.0%}", f"{match.similarity:.0%}", match.longest]
