"""How probable a model finds texts: needs an endpoint that reports log-probabilities of a prompt's tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlebench.integrity.familiarity.effects import EffectEstimate, difference_of_means, mean_difference
from mlebench.integrity.familiarity.probes import PASSAGE, ROW, Probe
from mlebench.integrity.familiarity.studied_model import StudiedModel

LEAST_LIKELY = 0.2  # the K of Min-K%, as a share
FEWEST_TOKENS = 5


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a text, from that of its tokens."""

    probability: float  # the mean of the tokens' probabilities
    min_k: float  # the mean log-probability of the least likely ones

    @classmethod
    def of(cls, tokens: Sequence[float]) -> "Likelihood | None":
        if len(tokens) < FEWEST_TOKENS:
            return None
        least = sorted(tokens)[: max(1, round(LEAST_LIKELY * len(tokens)))]
        return cls(sum(map(math.exp, tokens)) / len(tokens), sum(least) / len(least))


@dataclass(frozen=True)
class LikelihoodComparison:
    """Originals of one kind against their controls."""

    kind: str
    probability: EffectEstimate
    min_k: EffectEstimate

    def to_dict(self) -> dict[str, Any]:
        return {"probability": self.probability.to_dict(), "min_k": self.min_k.to_dict()}


def measure(model: StudiedModel, probes: Sequence[Probe], ours: Sequence[Probe]) -> list[LikelihoodComparison]:
    """Compare rows with perturbed ones, pair by pair, and passages with passages of our own description.

    A perturbed passage would be no control here: its sentences are intact, so a model that knows them predicts them.
    """
    rows = [probe for probe in probes if probe.kind == ROW]
    passages = [probe for probe in probes if probe.kind == PASSAGE]
    texts = [probe.shown + probe.target for probe in (*rows, *passages, *ours)] + [
        probe.control_shown + probe.control_target for probe in rows
    ]
    likelihoods = [None if tokens is None else Likelihood.of(tokens) for tokens in model.token_logprobs(texts)]
    ends = [len(rows), len(rows) + len(passages), len(rows) + len(passages) + len(ours)]
    paired = zip(likelihoods[: ends[0]], likelihoods[ends[2] :], strict=True)
    pairs = [(original, control) for original, control in paired if original and control]
    known, unknown = (
        [original for original in likelihoods[start:end] if original] for start, end in (ends[:2], ends[1:])
    )
    compared = []
    if pairs:
        compared.append(
            LikelihoodComparison(
                ROW,
                mean_difference([original.probability - control.probability for original, control in pairs]),
                mean_difference([original.min_k - control.min_k for original, control in pairs], is_share=False),
            )
        )
    if known and unknown:
        compared.append(
            LikelihoodComparison(
                PASSAGE,
                difference_of_means(
                    [original.probability for original in known], [original.probability for original in unknown]
                ),
                difference_of_means(
                    [original.min_k for original in known], [original.min_k for original in unknown], is_share=False
                ),
            )
        )
    return compared
