"""The passages that two programs share: runs of equal tokens, grown from shared fingerprints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlebench.core.untrusted import plain
from mlebench.integrity.plagiarism.programs import NoCodeError, Program, read_program
from mlebench.integrity.plagiarism.syntax_tokens import CLOSING, TokenSequence, tokenize
from mlebench.integrity.plagiarism.winnowing import SURELY_FOUND, Fingerprints, fingerprint
from mlebench.integrity.subjects import AgentFile

NEAR = 30  # tokens: passages with no more between them are shown as one
MOST_PLACES = 16  # of a fingerprint in a file to try
MOST_PASSAGES, MOST_LINES, LONGEST_LINE = 4, 40, 160
_STEP = 512


class EqualRun(NamedTuple):
    """Equal tokens in a row: where they begin in either program, and how many."""

    left: int
    right: int
    length: int


@dataclass(frozen=True)
class SharedPassages:
    """What two files have in common, with passages in the form of a record."""

    longest: int  # run of equal tokens
    passages: list[dict[str, Any]]


def shared_by_each(
    pairs_and_boilerplate: tuple[Sequence[tuple[AgentFile, AgentFile]], NDArray[np.uint64]],
) -> list[SharedPassages]:
    """For each pair of files, the longest run and the longest passages; boilerplate does not count."""
    pairs, common = pairs_and_boilerplate
    return [shared_by(left, right, common) for left, right in pairs]


def shared_by(left: AgentFile, right: AgentFile, common: NDArray[np.uint64]) -> SharedPassages:
    try:
        programs = read_program(left), read_program(right)
    except NoCodeError:  # it has changed since
        return SharedPassages(0, [])
    tokens = tokenize(programs[0].text), tokenize(programs[1].text)
    runs = equal_runs(tokens[0].values, tokens[1].values, common)
    chains = sorted(_chains(runs), key=lambda chain: -sum(run.length for run in chain))
    names = left.name, right.name
    passages = [_passage(chain, names, programs, tokens) for chain in _apart(chains)[:MOST_PASSAGES]]
    return SharedPassages(max((run.length for run in runs), default=0), passages)


def equal_runs(left: NDArray[np.uint64], right: NDArray[np.uint64], common: NDArray[np.uint64]) -> list[EqualRun]:
    """All maximal runs of equal tokens that hold a shared fingerprint, and so all of `SURELY_FOUND` or more."""
    runs_by_offset: dict[int, list[EqualRun]] = {}  # by the offset between the two programs
    for at_left, at_right in _seeds(fingerprint(left), fingerprint(right), common):
        known = runs_by_offset.setdefault(at_left - at_right, [])
        if known and known[-1].left <= at_left < known[-1].left + known[-1].length:
            continue
        before = _equal(left[:at_left][::-1], right[:at_right][::-1])
        after = _equal(left[at_left:], right[at_right:])
        known.append(EqualRun(at_left - before, at_right - before, before + after))
    return sorted(run for runs in runs_by_offset.values() for run in runs)


def _seeds(left: Fingerprints, right: Fingerprints, common: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    starts_of: dict[int, list[int]] = {}
    for hash, start in zip(right.hashes.tolist(), right.starts.tolist(), strict=True):
        starts_of.setdefault(hash, []).append(start)
    boilerplate = set(common.tolist())
    for hash, start in zip(left.hashes.tolist(), left.starts.tolist(), strict=True):
        if hash not in boilerplate:
            yield from ((start, right_start) for right_start in starts_of.get(hash, ())[:MOST_PLACES])


def _equal(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> int:
    """How many of the first tokens are equal."""
    most = min(len(left), len(right))
    for begin in range(0, most, _STEP):
        end = min(begin + _STEP, most)
        differ = np.flatnonzero(left[begin:end] != right[begin:end])
        if len(differ):
            return begin + int(differ[0])
    return most


def _chains(runs: Sequence[EqualRun]) -> list[list[EqualRun]]:
    """Runs that follow each other closely in both programs, as in a copied passage with changes."""
    chains: list[list[EqualRun]] = []
    for run in runs:
        for chain in reversed(chains[-8:]):
            last = chain[-1]
            gaps = run.left - last.left - last.length, run.right - last.right - last.length
            if all(0 <= gap <= NEAR for gap in gaps):
                chain.append(run)
                break
        else:
            chains.append([run])
    return [chain for chain in chains if sum(run.length for run in chain) >= SURELY_FOUND]


def _apart(chains: Sequence[list[EqualRun]]) -> list[list[EqualRun]]:
    """Of chains that overlap in the first program, the first."""
    separate: list[list[EqualRun]] = []
    for chain in chains:
        begin, end = chain[0].left, chain[-1].left + chain[-1].length
        if all(end <= other[0].left or begin >= other[-1].left + other[-1].length for other in separate):
            separate.append(chain)
    return separate


def _passage(
    chain: Sequence[EqualRun],
    names: tuple[str, str],
    programs: tuple[Program, Program],
    tokens: tuple[TokenSequence, TokenSequence],
) -> dict[str, Any]:
    last = chain[-1]
    spans = (chain[0].left, last.left + last.length), (chain[0].right, last.right + last.length)
    sides = [_side(*four) for four in zip(names, programs, tokens, spans, strict=True)]
    return {"tokens": sum(run.length for run in chain), "left": sides[0], "right": sides[1]}


def _side(name: str, program: Program, tokens: TokenSequence, span: tuple[int, int]) -> dict[str, Any]:
    begin, end = span
    opens = np.flatnonzero(tokens.values[begin:end] != CLOSING)  # a closing bracket belongs to the line before
    rows = tokens.rows[begin + int(opens[0]) : end]
    first, last = int(rows.min()), int(rows.max())
    lines = program.text.split("\n")[first : last + 1]
    cell, line = program.place(first)
    text = "\n".join(plain(text_line.expandtabs(4)[:LONGEST_LINE]) for text_line in lines[:MOST_LINES])
    return {"file": plain(name), "cell": cell, "line": line, "lines": len(lines), "text": text}
