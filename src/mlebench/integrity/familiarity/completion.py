"""Completion tests: how much closer does a model come to an original than to its control?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlebench.integrity.familiarity.effects import EffectEstimate, mean_difference
from mlebench.integrity.familiarity.probes import HEADER, OURS, PASSAGE, ROW, Probe
from mlebench.integrity.familiarity.studied_model import StudiedModel

SYSTEM = (
    "You are shown the beginning of a part of a file, and continue it word for word. Answer with what comes next in "
    "the file and with nothing else: no introduction, no explanation, no quotes, no code block. If you do not know it, "
    "guess."
)
_NEXT = {HEADER: "the rest of the line", ROW: "the next line", PASSAGE: "the next sentence", OURS: "the next sentence"}
_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"^```\w*\n(.*?)\n?(?:```.*)?$", re.DOTALL)


@dataclass(frozen=True)
class ProbeResult:
    """How close a model came with one probe, from 0 (nothing in common) to 1 (the exact text)."""

    kind: str
    original: float
    control: float

    @property
    def difference(self) -> float:
        return self.original - self.control


@dataclass(frozen=True)
class Completion:
    tested: list[ProbeResult]
    unanswered: int = 0

    def of(self, *kinds: str) -> list[ProbeResult]:
        return [result for result in self.tested if result.kind in kinds]

    @property
    def difference(self) -> EffectEstimate | None:
        """The mean over all probes of originals."""
        return difference_of(self.of(HEADER, ROW, PASSAGE))

    def to_dict(self) -> dict[str, Any]:
        kinds = {kind: self.of(kind) for kind in (HEADER, ROW, PASSAGE, OURS) if self.of(kind)}
        return {
            "difference": self.difference.to_dict() if self.difference else None,
            "unanswered": self.unanswered,
            "kinds": {
                kind: {
                    "difference": (difference_of(results) or mean_difference([0.0])).to_dict(),
                    "original": round(sum(result.original for result in results) / len(results), 6),
                    "control": round(sum(result.control for result in results) / len(results), 6),
                    "word_for_word": sum(result.original == 1 for result in results),
                    "word_for_word_control": sum(result.control == 1 for result in results),
                }
                for kind, results in kinds.items()
            },
        }


def difference_of(results: Sequence[ProbeResult]) -> EffectEstimate | None:
    return mean_difference([result.difference for result in results]) if results else None


def complete(model: StudiedModel, probes: Sequence[Probe], title: str) -> Completion:
    """Ask about each original and its control; a pair counts when both were answered."""
    prompts = [_prompt(probe, shown, title) for probe in probes for shown in (probe.shown, probe.control_shown)]
    answers = model.continue_all(SYSTEM, prompts)
    results = []
    for probe, original, control in zip(probes, answers[::2], answers[1::2], strict=True):
        if original is not None and control is not None:
            near = similarity(original, probe.shown, probe.target)
            results.append(
                ProbeResult(probe.kind, near, similarity(control, probe.control_shown, probe.control_target))
            )
    return Completion(results, len(probes) - len(results))


def _prompt(probe: Probe, shown: str, title: str) -> str:
    file = probe.file if probe.kind in (HEADER, ROW) else "description"
    return f"{title}, {file}. Continue with {_NEXT[probe.kind]}:\n\n{shown}"


def similarity(answer: str, shown: str, target: str) -> float:
    """1 minus the relative edit distance to what comes next; the answer is cut to the length asked for."""
    from rapidfuzz.distance import Levenshtein

    continuation, expected = " ".join(_continuation(answer, shown).split()), " ".join(target.split())
    return Levenshtein.normalized_similarity(continuation[: len(expected)], expected)


def _continuation(answer: str, shown: str) -> str:
    """The answer without thoughts, a code fence, or the shown text, which some models repeat first."""
    text = _THOUGHT.sub("", answer).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    for tail in (shown.strip(), shown.strip().rpartition("\n")[2]):
        if tail and text.startswith(tail) and (continuation := text[len(tail) :]).strip():
            return continuation
    return text
