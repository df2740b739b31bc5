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
from mlebench.gateway.estimate import Need
from mlebench.gateway.policy import RefusedError
from mlebench.gateway.prices import MILLION, Price, Tokens

USUAL_INPUT = 50_000  # tokens: more than the first request of any agent we know
USUAL_OUTPUT = 32_768  # tokens reserved for an answer whose request sets no limit
TELLING = 1000  # tokens; the estimate of a smaller input says little about the model's tokenizer
LARGEST_RATIO = 4.0
MOST_NAMES = 50  # of removed fields
ROOM = 1 << 14  # bytes of the counts on disk
COUNTED = ("input", "cached", "output", "reasoning")


@dataclass
class Count:
    """Totals of calls; a call and its retries count once."""

    calls: int = 0
    failed: int = 0  # calls that ended with an error
    retries: int = 0
    calls_without_usage: int = 0  # answered without reporting usage
    seconds: float = 0.0
    tokens: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(COUNTED))
    cost: float | None = 0.0  # None: some price is unknown

    def add(self, call: "Ended", price: Price | None) -> None:
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
class Ended:
    """A call that is over."""

    model: str
    tokens: Tokens
    seconds: float
    retries: int = 0
    error: str | None = None
    is_answered: bool = False  # the provider may charge: it has begun an answer, or has the request and no answer yet


@dataclass(frozen=True)
class Reservation:
    amount: float  # in the budget's unit
    output: int | None = None  # the limit to set on the answer, if the request has none or too high a one
    input: int = 0  # the estimate of its tokens


class Ledger:
    def __init__(self, access: ModelAccess, path: Path):
        self._access = access
        self._path = path
        self.total = Count()
        self.models = {model: Count() for model in access.models}
        self.refused: dict[str, int] = {}
        self.removed: dict[str, int] = {}  # fields, and in how many requests
        self.spent = self.reserved = 0.0  # in the budget's unit
        self.used_up = self.not_enough = self.shortened = 0  # calls
        self._ratio = 1.0  # of the input that was counted to what was estimated, where that was too low
        self._changed = asyncio.Event()
        self._is_written = False

    async def reserve(self, need: Need) -> Reservation:
        """Reserve what a call may use. If too little is left only because of calls in progress, wait for them.

        An answer may be as long as what is left allows.
        """
        budget = self._access.budget
        if budget is None:
            return Reservation(0.0)
        while True:
            output = self._room(need, budget.amount - self.spent)
            if output < min(need.asked or need.least, need.least):
                raise self._refusal(need, budget)
            amount = self._amount(need, self._input(need), output)
            if self.spent + self.reserved + amount <= budget.amount * (1 + 1e-12):  # sums of floats are not exact
                self.reserved += amount
                self.shortened += need.asked is not None and output < need.asked
                return Reservation(amount, None if output == need.asked else output, need.input)
            self._changed = asyncio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()

    def _input(self, need: Need) -> int:
        return math.ceil(need.input * self._ratio)

    def _room(self, need: Need, left: float) -> int:
        """How long an answer may be: as long as the request asks for, or as usual, or as what is left allows."""
        price = self._access.prices.get(need.model)
        wanted = need.asked or min(USUAL_OUTPUT, (price and price.max_output) or USUAL_OUTPUT)
        left -= self._amount(need, self._input(need), 0)
        each = self._amount(need, 0, 1) - self._amount(need, 0, 0)
        if left >= each * wanted:
            return wanted
        return math.floor(left / each) if left > 0 else -1

    def _amount(self, need: Need, input: int, output: int) -> float:
        """What this many tokens would use, in the budget's unit; there are as many outputs as answers."""
        output = output * need.answers + need.predicted
        if self._access.budget is None or self._access.budget.unit == TOKENS:
            return input + output
        price = self._access.prices[need.model]
        return (input * price.dearest_input(need.cache) + output * price.output) / MILLION

    def _refusal(self, need: Need, budget: Budget) -> RefusedError:
        left = budget.amount - self.spent
        is_used_up = self.spent > 0 and left < self._amount(replace(need, answers=1, predicted=0), 0, Need.least)
        self.used_up += is_used_up
        self.not_enough += not is_used_up
        least = self._amount(need, self._input(need), min(need.asked or need.least, need.least))
        why = (
            "It is used up, and this call is not made."
            if is_used_up
            else f"Not enough is left for this call, which is not made: even with a very short answer it could use "
            f"{least:.6g}. Send less, or ask for fewer answers."
        )
        message = f"This run's budget is {budget}, of which {self.spent:.6g} are used. {why}"
        return RefusedError(403, "budget_exceeded", message)

    def is_too_small_for(self, need: Need) -> bool:
        """Whether the budget, of which nothing is spent, cannot pay even one short answer to a usual request.

        A larger request is of the agent's own making, and says nothing about the budget.
        """
        if self.spent or self._access.budget is None or need.input > USUAL_INPUT:
            return False
        room = self._room(replace(need, answers=1, predicted=0), self._access.budget.amount)
        return room < min(need.asked or need.least, need.least)

    def release(self, reservation: Reservation, used: float) -> None:
        self.reserved -= reservation.amount
        self.spent += used
        self._changed.set()

    def settle(self, reservation: Reservation, call: Ended) -> float | None:
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

    def _used(self, call: Ended, price: Price | None) -> float:
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
