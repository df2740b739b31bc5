"""A language model that reads what an agent left and answers questions about it. It adds findings and clears none.

The agent may have written things to sway the judge. So the judge's word counts only as far as it can be checked. A
`yes` needs quotes that occur verbatim in the material, and not in our own instructions. A piece whose canary it does
not report was not read, and an answer that cannot be parsed is no answer; neither is ever a `no`.
"""

import json
import random
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlebench.core.untrusted import plain
from mlebench.integrity.agent_texts import ACTION, ANSWER, CODE, LOG, MESSAGE, AgentText, AgentTexts
from mlebench.integrity.model_endpoint import ModelEndpoint
from mlebench.integrity.rules.rubric import Rubric, fixed_questions
from mlebench.integrity.scrub import scrubbed
from mlebench.records.findings import ANSWERS, BY_JUDGE, NO, NOT_ENOUGH, NOTE, VIOLATION, YES, Evidence, Finding

PIECE = 60_000  # characters
OVERLAP = 3_000
MOST_SHOWN = 1_500_000  # characters of a run
SHORTEST_QUOTE = 12  # characters
MOST_QUOTES = 10
_MOST_OBJECTS = 50
_ORDER = (ACTION, MESSAGE, CODE, ANSWER, LOG)


@dataclass(frozen=True)
class JudgeAnswer:
    """The answer to one question about one run."""

    answer: str = NOT_ENOUGH
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""


@dataclass
class RunJudgement:
    """All answers about one run, and what went wrong in getting them."""

    verdicts: dict[str, JudgeAnswer]
    pieces: int = 0
    is_whole: bool = True  # everything was shown
    secrets: int = 0  # removed
    counts: Counter[str] = field(default_factory=Counter)  # of answers and quotes that do not count

    def findings(self, model: str) -> Iterator[Finding]:
        for id, verdict in self.verdicts.items():
            if verdict.answer == YES:
                says = f"The judge {model} says yes: {verdict.reason or 'it gives no reason'}"
                kind = VIOLATION if id in fixed_questions() else NOTE  # users may ask about allowed things
                yield Finding(kind, f"{BY_JUDGE}{id}", says, verdict.evidence)

    def to_dict(self) -> dict[str, Any]:
        names = ("unanswered", "unparsable", "canary lost", "quotes rejected")
        return {
            "answers": {id: verdict.answer for id, verdict in self.verdicts.items()},
            "pieces": self.pieces,
            "everything_was_shown": self.is_whole,
            "secrets_taken_out": self.secrets,
            **{name.replace(" ", "_"): self.counts[name] for name in names},
        }


@dataclass(frozen=True)
class _Material:
    """What the judge sees of a run: its texts as sent, in pieces with a canary each."""

    texts: list[AgentText]
    pieces: list[str]
    canaries: list[str]
    is_whole: bool
    secrets: int


@dataclass(frozen=True)
class Judge:
    endpoint: ModelEndpoint
    rubric: Rubric

    def judge(self, runs: Sequence[tuple[AgentTexts, Sequence[str]]]) -> list[RunJudgement]:
        """Judge runs, each given with the texts that its agent was given: quotes from these prove nothing."""
        materials = [_material(texts) for texts, _ in runs]
        prompts = [self._prompt(piece) for material in materials for piece in material.pieces]
        answers = iter(self.endpoint.ask_all(self.rubric.system, prompts))
        return [
            self._judged(material, [next(answers) for _ in material.pieces], agents_texts)
            for material, (_, agents_texts) in zip(materials, runs, strict=True)
        ]

    def _prompt(self, piece: str) -> str:
        number = secrets.token_hex(8)  # the material cannot know it, and so cannot fake its own end
        questions = "\n".join(f"- `{question.id}`: {question.asks}" for question in self.rubric.questions)
        return (
            f"Questions:\n{questions}\n\n===== {number}\n{piece}\n===== {number}\n\nAnswer with the JSON object alone."
        )

    def _judged(self, material: _Material, answers: list[str | None], agents_texts: Sequence[str]) -> RunJudgement:
        ids = [question.id for question in self.rubric.questions]
        judged = RunJudgement({}, len(answers), material.is_whole, material.secrets)
        own = [normal(text) for text in (*agents_texts, *self.rubric.texts)]
        quotable = [(text, normal(text.text)) for text in material.texts]
        replies = [
            _parsed(text, canary, judged.counts) for text, canary in zip(answers, material.canaries, strict=True)
        ]
        for id in ids:
            answers_of_pieces = [_verdict(answer, id, quotable, own, judged.counts) for answer in replies]
            judged.verdicts[id] = _combined(answers_of_pieces, judged.is_whole)
        return judged


def normal(text: str) -> str:
    """The form in which quotes are compared: runs of white space become one blank."""
    return " ".join(text.split())


def _material(texts: AgentTexts) -> _Material:
    shown, room, count = [], MOST_SHOWN, 0
    for kind in _ORDER:
        for text in texts.of(kind):
            clean, secret_count = scrubbed(plain(text.text[: max(0, room) + PIECE]))  # no secret is cut at the edge
            shown.append(replace(text, text=clean[: max(0, room)]))
            room -= len(clean)
            count += secret_count
    joined = "\n".join(
        f"[{text.file}{f', line {text.line}' if text.line else ''}: {text.kind}]\n{text.text}" for text in shown
    )
    canaries = [secrets.token_hex(5) for _ in pieces_of(joined)]
    pieces = [_with_canary(piece, canary) for piece, canary in zip(pieces_of(joined), canaries, strict=True)]
    return _Material(shown, pieces, canaries, texts.is_whole and room >= 0, count)


def pieces_of(text: str) -> list[str]:
    """Overlapping pieces, so that text at an edge is whole in one of them."""
    last = max(1, len(text) - OVERLAP)
    return [text[start : start + PIECE] for start in range(0, last, PIECE - OVERLAP)] if text else []


def _with_canary(piece: str, canary: str) -> str:
    lines = piece.split("\n")
    lines.insert(random.SystemRandom().randint(0, len(lines)), f"canary: {canary}")
    return "\n".join(lines)


def _parsed(text: str | None, canary: str, counts: Counter[str]) -> dict[str, Any] | None:
    """The answers about a piece, if they count."""
    if text is None:
        counts["unanswered"] += 1
        return None
    objects = list(_objects(text))
    if len(objects) != 1:  # one of two may be what the material told the judge to say
        counts["unparsable"] += 1
        return None
    reported = objects[0].get("canaries")
    if not isinstance(reported, list) or canary not in [str(word).removeprefix("canary:").strip() for word in reported]:
        counts["canary lost"] += 1
        return None
    return objects[0]["answers"]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text that hold answers."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value, end = None, start + 1
        if isinstance(value, dict) and isinstance(value.get("answers"), dict):
            yield value
        start = text.find("{", end)


def _verdict(
    answers: dict[str, Any] | None, id: str, quotable: list[tuple[AgentText, str]], own: list[str], counts: Counter[str]
) -> JudgeAnswer:
    if answers is None:
        return JudgeAnswer()
    match answers.get(id):
        case {"answer": str(answer), **rest} if (answer := normal(answer).lower()) in ANSWERS:
            pass
        case _:
            counts["unparsable"] += 1
            return JudgeAnswer()
    reason = normal(plain(str(rest.get("reason") or "")))[:300]
    if answer != YES:
        return JudgeAnswer(answer, reason=reason)
    quotes = rest.get("quotes")
    quotes = (
        [normal(quote) for quote in quotes[:MOST_QUOTES] if isinstance(quote, str)] if isinstance(quotes, list) else []
    )
    evidence = [place_of_quote for quote in quotes if (place_of_quote := _checked(quote, quotable, own))]
    counts["quotes rejected"] += len(quotes) - len(evidence)
    return JudgeAnswer(YES, tuple(evidence), reason) if evidence else JudgeAnswer()


def _checked(quote: str, quotable: list[tuple[AgentText, str]], own: list[str]) -> Evidence | None:
    """Where a quote occurs verbatim; None if nowhere, or if it comes from what the agent was given."""
    if len(quote) < SHORTEST_QUOTE or any(quote in text for text in own):
        return None
    for text, normalised in quotable:
        if quote in normalised:
            words = re.search(r"\s+".join(map(re.escape, quote.split())), text.text)
            return Evidence(text.file, quote, text.line_at(words.start()) if words else None)
    return None


def _combined(verdicts: list[JudgeAnswer], is_whole: bool) -> JudgeAnswer:
    """One `yes` is enough; a `no` must come from every piece, with nothing left out."""
    positive = [verdict for verdict in verdicts if verdict.answer == YES]
    if positive:
        evidence = dict.fromkeys(evidence_item for verdict in positive for evidence_item in verdict.evidence)
        return JudgeAnswer(YES, tuple(evidence), positive[0].reason)
    if verdicts and is_whole and all(verdict.answer == NO for verdict in verdicts):
        return JudgeAnswer(NO, reason=verdicts[0].reason)
    return JudgeAnswer()
