"""`mlebench inspect plagiarism`: compares the code of runs with notebooks, and with other runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlebench.core.errors import PrerequisiteError
from mlebench.core.isolate import IsolatedCallError
from mlebench.core.paths import fingerprints_dir
from mlebench.integrity.isolated import inspect_isolated
from mlebench.integrity.plagiarism.corpus import LEAST_SHARED, Corpus, Hashes, Index, containments
from mlebench.integrity.plagiarism.matching import Shared, shared_by_each
from mlebench.integrity.plagiarism.programs import is_code
from mlebench.integrity.plagiarism.reading import Read, read_all
from mlebench.integrity.subjects import Source, Subject, sources_below
from mlebench.records.run_groups import UNKNOWN

MOST_FILES = 200  # of a run
MOST_NAMED = 5  # notebooks, and runs of each kind, that a record names
OTHER_AGENT, SAME_AGENT, UNKNOWN_AGENT = "another agent", "the same agent", "agent not known"


@dataclass(frozen=True)
class Notebooks:
    """What runs of a competition are compared with."""

    name: str
    reads: Sequence[Read] = ()
    corpus: Corpus = field(default_factory=lambda: Corpus(()))
    missing: str | None = None  # why there are none, and what to do

    @property
    def unread(self) -> list[Read]:
        return [read for read in self.reads if read.fault]


@dataclass(frozen=True)
class Match:
    """A file of a run and the file that shares the most with it, in a notebook or another run."""

    file: Read
    other: Read
    name: str  # of the notebook or run
    containment: float  # the share of the file's fingerprints that the other has
    similarity: float  # the share of the fingerprints of both
    shared: int  # fingerprints
    agent: str | None = None  # of another run: one of the three above
    longest: int | None = None  # run of equal tokens; None if it could not be determined
    passages: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Compared:
    """What was found about a run."""

    subject: Subject
    notebooks: Notebooks
    files: Sequence[Read]
    left_out: int  # files
    boilerplate: int  # fingerprints that do not count
    closest: tuple[Match, ...] = ()
    runs: tuple[Match, ...] = ()

    @property
    def read(self) -> list[Read]:
        return [read for read in self.files if read.fault is None]


Find = Callable[[str], tuple[str, Path | None, str]]  # a competition's corpus: its name, its folder or why it has none


def compare(subjects: Iterable[Subject], find: Find) -> Iterator[Compared]:
    """Compare competition by competition, in order of first appearance."""
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.competition, []).append(subject)
    known: dict[str, Notebooks] = {}
    for competition, some in groups.items():
        name, folder, missing = find(competition)
        if name not in known:
            known = {name: _notebooks(name, folder, missing)}  # one at a time: they may be large
        yield from _compare(some, known[name])


def _notebooks(name: str, folder: Path | None, missing: str) -> Notebooks:
    if folder is None:
        return Notebooks(name, missing=missing)
    sources = (source for source in sources_below(folder) if is_code(source.name))
    reads = read_all(sources, keep=fingerprints_dir())
    if not any(read.fault is None for read in reads):
        raise PrerequisiteError(f"there is no code in {folder}: neither programs (.py) nor notebooks (.ipynb)")
    return Notebooks(name, reads, Corpus([read.hashes for read in reads]))


def _compare(subjects: Sequence[Subject], notebooks: Notebooks) -> Iterator[Compared]:
    code = [[source for source in subject.code if is_code(source.name)] for subject in subjects]
    waiting = iter(read_all(source for sources in code for source in sources[:MOST_FILES]))
    files = [[next(waiting) for _ in sources[:MOST_FILES]] for sources in code]
    kept = [[notebooks.corpus.without_common(read.hashes) for read in some] for some in files]
    everything = [read for some in files for read in some]
    owners = [number for number, some in enumerate(files) for _ in some]
    runs = Index([hashes for some in kept for hashes in some])
    for number, subject in enumerate(subjects):
        own = list(zip(files[number], kept[number], strict=True))
        found = Compared(
            subject,
            notebooks,
            files[number],
            left_out=len(code[number]) - len(files[number]),
            boilerplate=sum(len(read.hashes) - len(hashes) for read, hashes in own),
            closest=_best(own, notebooks.corpus.index, notebooks.reads, [read.name for read in notebooks.reads]),
        )
        names = [(_label(subjects[owner], subject), relation(subject, subjects[owner])) for owner in owners]
        others = [None if owner == number else label for owner, (label, _) in zip(owners, names, strict=True)]
        agents = dict(names)
        yield _with_passages(replace(found, runs=_by_agent(_best(own, runs, everything, others, most=None), agents)))


def _best(
    own: Sequence[tuple[Read, Hashes]],
    index: Index,
    reads: Sequence[Read],
    names: Sequence[str | None],
    most: int | None = MOST_NAMED,
) -> tuple[Match, ...]:
    """The closest pair of files for each name, those that share the most first; files without a name are skipped."""
    best: dict[str, Match] = {}
    for file, hashes in own:
        held = containments(index, hashes)
        similar = index.similarities(hashes)
        for place in np.flatnonzero(held).tolist():
            name = names[place]
            if name is None:
                continue
            match = Match(
                file,
                reads[place],
                name,
                float(held[place]),
                float(similar[place]),
                round(float(held[place]) * len(np.unique(hashes))),
            )
            if name not in best or _rank(match) < _rank(best[name]):
                best[name] = match
    return tuple(sorted(best.values(), key=_rank)[:most])


def _rank(match: Match) -> tuple[float, float, str]:
    return -match.containment, -match.similarity, match.name


def _by_agent(matches: Sequence[Match], agents: dict[str, str]) -> tuple[Match, ...]:
    """Runs of other agents first, up to a maximum of each kind."""
    kinds = OTHER_AGENT, UNKNOWN_AGENT, SAME_AGENT
    some = [[replace(match, agent=kind) for match in matches if agents[match.name] == kind] for kind in kinds]
    return tuple(match for kind in some for match in kind[:MOST_NAMED])


def relation(one: Subject, other: Subject) -> str:
    if one.group is None or other.group is None:
        return UNKNOWN_AGENT
    names = {side.group.record.agent.name for side in (one, other) if side.group}
    if UNKNOWN in names:
        return UNKNOWN_AGENT
    return SAME_AGENT if len(names) == 1 else OTHER_AGENT


def _label(subject: Subject, seen_from: Subject) -> str:
    """A run's name, with its group if that is a different one."""
    if subject.group is None or (seen_from.group and seen_from.group.paths.root == subject.group.paths.root):
        return subject.name
    return f"{subject.group.paths.root.name}/{subject.name}"


def _with_passages(found: Compared) -> Compared:
    """Add what the closest files share, verbatim; no passage grows from boilerplate."""
    matches = [*found.closest, *found.runs]
    if not matches:
        return found
    hashes = np.unique(np.concatenate([match.file.hashes for match in matches]))
    common = np.intersect1d(hashes, found.notebooks.corpus.common)
    pairs: list[tuple[Source, Source]] = [(match.file.source, match.other.source) for match in matches]
    try:
        told: list[Shared] = inspect_isolated(shared_by_each, (pairs, common))
    except IsolatedCallError:
        return found
    quoted = {0, len(found.closest)}  # the closest notebook and the closest run
    with_them = [
        replace(match, longest=shared.longest, passages=tuple(shared.passages) if place in quoted else ())
        for place, (match, shared) in enumerate(zip(matches, told, strict=True))
    ]
    count = len(found.closest)
    return replace(found, closest=tuple(with_them[:count]), runs=tuple(with_them[count:]))


def is_comparable(found: Compared) -> bool:
    """Whether there is enough code to find anything."""
    return any(len(np.unique(read.hashes)) >= LEAST_SHARED for read in found.read)
