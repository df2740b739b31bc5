"""What runs cost, and what readers of their scores should know: time, money, second throws of the dice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlebench.core.outcomes import INFRA_ERROR, MODEL_UNAVAILABLE
from mlebench.records.usage import ModelUsage
from mlebench.report.types import RunOutcome

TOKENS = ("input", "cached", "output", "reasoning")  # input includes cached, output includes reasoning


def usage_figures(usage: ModelUsage | None) -> dict[str, Any]:
    """Calls, tokens and cost of a run, as the gateway counted them; None if it does not say."""
    if usage is None:
        return {"calls": None, "tokens": None, "cost": None, "is_lower_bound": False}
    return {
        "calls": usage.calls,
        "tokens": {kind: getattr(usage, f"{kind}_tokens") for kind in TOKENS},
        "cost": usage.cost,
        "is_lower_bound": usage.is_lower_bound,
    }


@dataclass(frozen=True)
class UsageTotals:
    """Sums over the runs that report a value; None if none does. `unknown` counts the others, and lower bounds."""

    hours: float | None = None
    gpu_hours: float | None = None
    starts: float | None = None  # of agents
    rerolls: int | None = None
    unsealed: int | None = None
    infra_errors: int | None = None
    model_unavailable: int | None = None  # runs
    calls: float | None = None
    tokens: dict[str, float | None] | None = None
    cost: float | None = None  # in US dollars
    unknown: dict[str, int] | None = None  # runs whose calls, tokens, cost are not, or not completely, known

    @classmethod
    def of(cls, outcomes: Iterable[RunOutcome]) -> "UsageTotals":
        runs = [outcome for outcome in outcomes if outcome.rerolls is not None]
        if not runs:
            return cls()
        tokens = {kind: [(outcome.tokens or {}).get(kind) for outcome in runs] for kind in TOKENS}
        calls, costs = [outcome.calls for outcome in runs], [outcome.cost for outcome in runs]
        pairs = zip(tokens["input"], tokens["output"], strict=True)
        without_tokens = sum(None in pair or run.is_lower_bound for pair, run in zip(pairs, runs, strict=True))
        without_cost = sum(run.cost is None or run.is_lower_bound for run in runs)
        return cls(
            hours=_total([outcome.hours for outcome in runs]),
            gpu_hours=_total([outcome.gpu_hours for outcome in runs]),
            starts=_total([outcome.starts for outcome in runs]),
            rerolls=sum(outcome.rerolls or 0 for outcome in runs),
            unsealed=sum(outcome.sealed is False for outcome in runs),
            infra_errors=sum(outcome.ended == INFRA_ERROR for outcome in runs),
            model_unavailable=sum(outcome.ended == MODEL_UNAVAILABLE for outcome in runs),
            calls=_total(calls),
            tokens={kind: _total(counts) for kind, counts in tokens.items()},
            cost=_total(costs),
            unknown={"calls": calls.count(None), "tokens": without_tokens, "cost": without_cost},
        )

    @property
    def all_tokens(self) -> float | None:
        return _total([(self.tokens or {}).get(kind) for kind in ("input", "output")])


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
