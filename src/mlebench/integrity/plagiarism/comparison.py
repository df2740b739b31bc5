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
from mlebench.integrity.plagiarism.code_files import CodeFile, read_all
from mlebench.integrity.plagiarism.corpus import LEAST_SHARED, Corpus, Hashes, Index, containments
from mlebench.integrity.plagiarism.matching import SharedPassages, shared_by_each
from mlebench.integrity.plagiarism.programs import is_code
from mlebench.integrity.subjects import AgentFile, Subject, sources_below
from mlebench.records.run_groups import UNKNOWN

MOST_FILES = 200  # of a run
MOST_NAMED = 5  # notebooks, and runs of each kind, that a record names
OTHER_AGENT, SAME_AGENT, UNKNOWN_AGENT = "another agent", "the same agent", "agent not known"


@dataclass(frozen=True)
class Notebooks:
    """What runs of a competition are compared with."""

    name: str
    reads: Sequence[CodeFile] = ()
    corpus: Corpus = field(default_factory=lambda: Corpus(()))
    missing: str | None = None  # why there are none, and what to do

    @property
    def unread(self) -> list[CodeFile]:
        return [read for read in self.reads if read.fault]


@dataclass(frozen=True)
class Match:
    """A file of a run and the file that shares the most with it, in a notebook or another run."""

    file: CodeFile
    other: CodeFile
    name: str  # of the notebook or run
    containment: float  # the share of the file's fingerprints that the other has
    similarity: float  # the share of the fingerprints of both
    shared: int  # fingerprints
    agent: str | None = None  # of another run: one of the three above
    longest: int | None = None  # run of equal tokens; None if it could not be determined
    passages: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class CodeComparison:
    """What was found about a run."""

    subject: Subject
    notebooks: Notebooks
    files: Sequence[CodeFile]
    left_out: int  # files
    boilerplate: int  # fingerprints that do not count
    closest: tuple[Match, ...] = ()
    runs: tuple[Match, ...] = ()

    @property
    def read(self) -> list[CodeFile]:
        return [read for read in self.files if read.fault is None]


Find = Callable[[str], tuple[str, Path | None, str]]  # a competition's corpus: its name, its folder or why it has none


def compare(subjects: Iterable[Subject], find: Find) -> Iterator[CodeComparison]:
    """Compare competition by competition, in order of first appearance."""
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.competition, []).append(subject)
    known: dict[str, Notebooks] = {}
    for competition, same_competition in groups.items():
        name, folder, missing = find(competition)
        if name not in known:
            known = {name: _notebooks(name, folder, missing)}  # one at a time: they may be large
        yield from _compare(same_competition, known[name])


def _notebooks(name: str, folder: Path | None, missing: str) -> Notebooks:
    if folder is None:
        return Notebooks(name, missing=missing)
    sources = (source for source in sources_below(folder) if is_code(source.name))
    reads = read_all(sources, keep=fingerprints_dir())
    if not any(read.fault is None for read in reads):
        raise PrerequisiteError(f"there is no code in {folder}: neither programs (.py) nor notebooks (.ipynb)")
    return Notebooks(name, reads, Corpus([read.hashes for read in reads]))


def _compare(subjects: Sequence[Subject], notebooks: Notebooks) -> Iterator[CodeComparison]:
    code = [[source for source in subject.code if is_code(source.name)] for subject in subjects]
    waiting = iter(read_all(source for sources in code for source in sources[:MOST_FILES]))
    files = [[next(waiting) for _ in sources[:MOST_FILES]] for sources in code]
    distinctive = [[notebooks.corpus.without_common(read.hashes) for read in read_files] for read_files in files]
    all_files = [read for read_files in files for read in read_files]
    owners = [number for number, read_files in enumerate(files) for _ in read_files]
    runs = Index([hashes for read_files in distinctive for hashes in read_files])
    for number, subject in enumerate(subjects):
        own = list(zip(files[number], distinctive[number], strict=True))
        comparison = CodeComparison(
            subject,
            notebooks,
            files[number],
            left_out=len(code[number]) - len(files[number]),
            boilerplate=sum(len(read.hashes) - len(hashes) for read, hashes in own),
            closest=_best(own, notebooks.corpus.index, notebooks.reads, [read.name for read in notebooks.reads]),
        )
        names = [(_label(subjects[owner], subject), relation(subject, subjects[owner])) for owner in owners]
        other_labels = [None if owner == number else label for owner, (label, _) in zip(owners, names, strict=True)]
        agents = dict(names)
        yield _with_passages(
            replace(comparison, runs=_by_agent(_best(own, runs, all_files, other_labels, most=None), agents))
        )


def _best(
    own: Sequence[tuple[CodeFile, Hashes]],
    index: Index,
    reads: Sequence[CodeFile],
    names: Sequence[str | None],
    most: int | None = MOST_NAMED,
) -> tuple[Match, ...]:
    """The closest pair of files for each name, those that share the most first; files without a name are skipped."""
    best: dict[str, Match] = {}
    for file, hashes in own:
        containment = containments(index, hashes)
        similar = index.similarities(hashes)
        for index_of_file in np.flatnonzero(containment).tolist():
            name = names[index_of_file]
            if name is None:
                continue
            match = Match(
                file,
                reads[index_of_file],
                name,
                float(containment[index_of_file]),
                float(similar[index_of_file]),
                round(float(containment[index_of_file]) * len(np.unique(hashes))),
            )
            if name not in best or _rank(match) < _rank(best[name]):
                best[name] = match
    return tuple(sorted(best.values(), key=_rank)[:most])


def _rank(match: Match) -> tuple[float, float, str]:
    return -match.containment, -match.similarity, match.name


def _by_agent(matches: Sequence[Match], agents: dict[str, str]) -> tuple[Match, ...]:
    """Runs of other agents first, up to a maximum of each kind."""
    kinds = OTHER_AGENT, UNKNOWN_AGENT, SAME_AGENT
    matches_of_kinds = [
        [replace(match, agent=kind) for match in matches if agents[match.name] == kind] for kind in kinds
    ]
    return tuple(match for kind in matches_of_kinds for match in kind[:MOST_NAMED])


def relation(subject: Subject, other: Subject) -> str:
    if subject.group is None or other.group is None:
        return UNKNOWN_AGENT
    names = {side.group.record.agent.name for side in (subject, other) if side.group}
    if UNKNOWN in names:
        return UNKNOWN_AGENT
    return SAME_AGENT if len(names) == 1 else OTHER_AGENT


def _label(subject: Subject, seen_from: Subject) -> str:
    """A run's name, with its group if that is a different one."""
    if subject.group is None or (seen_from.group and seen_from.group.paths.root == subject.group.paths.root):
        return subject.name
    return f"{subject.group.paths.root.name}/{subject.name}"


def _with_passages(comparison: CodeComparison) -> CodeComparison:
    """Add what the closest files share, verbatim; no passage grows from boilerplate."""
    matches = [*comparison.closest, *comparison.runs]
    if not matches:
        return comparison
    hashes = np.unique(np.concatenate([match.file.hashes for match in matches]))
    common = np.intersect1d(hashes, comparison.notebooks.corpus.common)
    pairs: list[tuple[AgentFile, AgentFile]] = [(match.file.source, match.other.source) for match in matches]
    try:
        shared_passages: list[SharedPassages] = inspect_isolated(shared_by_each, (pairs, common))
    except IsolatedCallError:
        return comparison
    quoted = {0, len(comparison.closest)}  # the closest notebook and the closest run
    with_passages = [
        replace(match, longest=shared.longest, passages=tuple(shared.passages) if number in quoted else ())
        for number, (match, shared) in enumerate(zip(matches, shared_passages, strict=True))
    ]
    count = len(comparison.closest)
    return replace(comparison, closest=tuple(with_passages[:count]), runs=tuple(with_passages[count:]))


def is_comparable(comparison: CodeComparison) -> bool:
    """Whether there is enough code to find anything."""
    return any(len(np.unique(read.hashes)) >= LEAST_SHARED for read in comparison.read)
