"""Counts of a run's calls, and its budget. Only one asyncio loop uses it, so there are no locks."""

import asyncio
import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlebench.core.files import rewrite
from mlebench.gateway.access import TOKENS, Budget, ModelAccess
from mlebench.gateway.estimate import CallEstimate
from mlebench.gateway.policy import RequestRefusedError
from mlebench.gateway.prices import MILLION, Price, TokenUsage

USUAL_INPUT = 50_000  # tokens: more than the first request of any agent we know
USUAL_OUTPUT = 32_768  # tokens reserved for an answer whose request sets no limit
TELLING = 1000  # tokens; the estimate of a smaller input says little about the model's tokenizer
LARGEST_RATIO = 4.0
MOST_NAMES = 50  # of removed fields
ROOM = 1 << 14  # bytes of the counts on disk
COUNTED = ("input", "cached", "output", "reasoning")


@dataclass
class ModelTotals:
    """Totals of calls; a call and its retries count once."""

    calls: int = 0
    failed: int = 0  # calls that ended with an error
    retries: int = 0
    calls_without_usage: int = 0  # answered without reporting usage
    seconds: float = 0.0
    tokens: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(COUNTED))
    cost: float | None = 0.0  # None: some price is unknown

    def add(self, call: "FinishedCall", price: Price | None) -> None:
        self.calls += 1
        self.failed += call.error is not None
        self.retries += call.retries
        self.seconds += call.seconds
        self.calls_without_usage += call.is_answered and not call.tokens.is_known
        for name in COUNTED:
            if (more := getattr(call.tokens, name)) is not None:
                self.tokens[name] = (self.tokens[name] or 0) + more
        if call.is_answered:
            self.cost = None if self.cost is None or price is None else self.cost + price.cost(call.tokens)

    @property
    def _knows_no_cost(self) -> bool:
        return self.calls_without_usage > 0 and not self.cost

    def to_dict(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "failed": self.failed,
            "retries": self.retries,
            "calls_without_usage": self.calls_without_usage,
            "seconds": round(self.seconds, 3),
            **{f"{name}_tokens": count for name, count in self.tokens.items()},
            "cost": None if self.cost is None or self._knows_no_cost else round(self.cost, 8),
            "is_lower_bound": self.calls_without_usage > 0,
        }


@dataclass(frozen=True)
class FinishedCall:
    """A call that is over."""

    model: str
    tokens: TokenUsage
    seconds: float
    retries: int = 0
    error: str | None = None
    is_answered: bool = False  # the provider may charge: it has begun an answer, or has the request and no answer yet


@dataclass(frozen=True)
class Reservation:
    amount: float  # in the budget's unit
    output: int | None = None  # the limit to set on the answer, if the request has none or too high a one
    input: int = 0  # the estimate of its tokens


class CallLedger:
    def __init__(self, access: ModelAccess, path: Path):
        self._access = access
        self._path = path
        self.total = ModelTotals()
        self.models = {model: ModelTotals() for model in access.models}
        self.refused: dict[str, int] = {}
        self.removed: dict[str, int] = {}  # fields, and in how many requests
        self.spent = self.reserved = 0.0  # in the budget's unit
        self.used_up = self.not_enough = self.shortened = 0  # calls
        self._ratio = 1.0  # of the input that was counted to what was estimated, where that was too low
        self._changed = asyncio.Event()
        self._is_written = False

    async def reserve(self, estimate: CallEstimate) -> Reservation:
        """Reserve what a call may use. If too little is left only because of calls in progress, wait for them.

        An answer may be as long as what is left allows.
        """
        budget = self._access.budget
        if budget is None:
            return Reservation(0.0)
        while True:
            output = self._room(estimate, budget.amount - self.spent)
            if output < min(estimate.output_limit or estimate.least, estimate.least):
                raise self._refusal(estimate, budget)
            amount = self._amount(estimate, self._input(estimate), output)
            if self.spent + self.reserved + amount <= budget.amount * (1 + 1e-12):  # sums of floats are not exact
                self.reserved += amount
                self.shortened += estimate.output_limit is not None and output < estimate.output_limit
                return Reservation(amount, None if output == estimate.output_limit else output, estimate.input)
            self._changed = asyncio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()

    def _input(self, estimate: CallEstimate) -> int:
        return math.ceil(estimate.input * self._ratio)

    def _room(self, estimate: CallEstimate, remaining: float) -> int:
        """How long an answer may be: as long as the request asks for, or as usual, or as what is left allows."""
        price = self._access.prices.get(estimate.model)
        wanted = estimate.output_limit or min(USUAL_OUTPUT, (price and price.max_output) or USUAL_OUTPUT)
        remaining -= self._amount(estimate, self._input(estimate), 0)
        per_token = self._amount(estimate, 0, 1) - self._amount(estimate, 0, 0)
        if remaining >= per_token * wanted:
            return wanted
        return math.floor(remaining / per_token) if remaining > 0 else -1

    def _amount(self, estimate: CallEstimate, input: int, output: int) -> float:
        """What this many tokens would use, in the budget's unit; there are as many outputs as answers."""
        output = output * estimate.answers + estimate.predicted
        if self._access.budget is None or self._access.budget.unit == TOKENS:
            return input + output
        price = self._access.prices[estimate.model]
        return (input * price.dearest_input(estimate.cache) + output * price.output) / MILLION

    def _refusal(self, estimate: CallEstimate, budget: Budget) -> RequestRefusedError:
        remaining = budget.amount - self.spent
        is_used_up = self.spent > 0 and remaining < self._amount(
            replace(estimate, answers=1, predicted=0), 0, CallEstimate.least
        )
        self.used_up += is_used_up
        self.not_enough += not is_used_up
        least = self._amount(
            estimate, self._input(estimate), min(estimate.output_limit or estimate.least, estimate.least)
        )
        why = (
            "It is used up, and this call is not made."
            if is_used_up
            else f"Not enough is left for this call, which is not made: even with a very short answer it could use "
            f"{least:.6g}. Send less, or ask for fewer answers."
        )
        message = f"This run's budget is {budget}, of which {self.spent:.6g} are used. {why}"
        return RequestRefusedError(403, "budget_exceeded", message)

    def is_too_small_for(self, estimate: CallEstimate) -> bool:
        """Whether the budget, of which nothing is spent, cannot pay even one short answer to a usual request.

        A larger request is of the agent's own making, and says nothing about the budget.
        """
        if self.spent or self._access.budget is None or estimate.input > USUAL_INPUT:
            return False
        room = self._room(replace(estimate, answers=1, predicted=0), self._access.budget.amount)
        return room < min(estimate.output_limit or estimate.least, estimate.least)

    def release(self, reservation: Reservation, used: float) -> None:
        self.reserved -= reservation.amount
        self.spent += used
        self._changed.set()

    def settle(self, reservation: Reservation, call: FinishedCall) -> float | None:
        """Count a finished call and return its cost. An answer of unknown usage uses up its whole reservation."""
        price = self._access.prices.get(call.model)
        if call.tokens.input and reservation.input >= TELLING:
            self._ratio = max(self._ratio, min(LARGEST_RATIO, call.tokens.input / reservation.input))
        used = 0.0
        if self._access.budget and call.is_answered:
            used = self._used(call, price) if call.tokens.is_known else reservation.amount
        self.release(reservation, used)
        self.total.add(call, price)
        self.models[call.model].add(call, price)
        self._is_written = False
        return price.cost(call.tokens) if price and call.tokens.is_known else None

    def _used(self, call: FinishedCall, price: Price | None) -> float:
        if self._access.budget and self._access.budget.unit == TOKENS:
            return (call.tokens.input or 0) + (call.tokens.output or 0)
        return price.cost(call.tokens) if price else 0.0

    def refuse(self, kind: str) -> None:
        self.refused[kind] = self.refused.get(kind, 0) + 1
        self._is_written = False

    def remove(self, names: Sequence[str]) -> list[str]:
        """Count fields that were removed from a request; return those that are new."""
        new = [name for name in names if name not in self.removed][: MOST_NAMES - len(self.removed)]
        for name in new:
            self.removed[name] = 0
        for name in names:
            if name in self.removed:
                self.removed[name] += 1
                self._is_written = False
        return new

    def to_dict(self) -> dict[str, Any]:
        budget = self._access.budget
        return {
            **self.total.to_dict(),
            "refused": sum(self.refused.values()),
            "refusals": dict(self.refused),
            "removed_fields": dict(self.removed),
            "budget": budget
            and {
                "limit": budget.amount,
                "unit": budget.unit,
                "used": round(self.spent, 8),
                "exceeded": self.used_up > 0,
                "used_up": self.used_up,
                "not_enough": self.not_enough,
                "shortened": self.shortened,
            },
            "models": {model: count.to_dict() for model, count in self.models.items() if count.calls},
        }

    def write(self, **more: Any) -> None:
        """Write the counts to disk, if they have changed. The first take room for later ones, on a full disk."""
        if not self._is_written:
            with contextlib.suppress(OSError):
                rewrite(self._path, f"{json.dumps(self.to_dict() | more, indent=1)}\n".ljust(ROOM))
                self._is_written = True
