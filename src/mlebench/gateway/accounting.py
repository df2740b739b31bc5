"""Counts of a run's calls, and its budget. Only one asyncio loop uses it, so there are no locks."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlebench.files import write_whole
from mlebench.gateway.access import TOKENS, ModelAccess
from mlebench.gateway.policy import RefusedError
from mlebench.gateway.prices import MILLION, Price, Tokens

USUAL_OUTPUT = 32_768  # tokens reserved for an answer whose request sets no limit
LEAST_OUTPUT = 256  # with fewer left, such a request is not worth sending
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
    is_answered: bool = False  # the provider has begun an answer, and so will charge for it


@dataclass(frozen=True)
class Reservation:
    amount: float  # in the budget's unit
    output: int | None = None  # the limit to set on the answer, if the request has none


class Ledger:
    def __init__(self, access: ModelAccess, path: Path):
        self._access = access
        self._path = path
        self.total = Count()
        self.models = {model: Count() for model in access.models}
        self.refused: dict[str, int] = {}
        self.spent = self.reserved = 0.0  # in the budget's unit
        self._changed = asyncio.Event()
        self._is_written = False

    async def reserve(self, model: str, input: int, asked: int | None, answers: int) -> Reservation:
        """Reserve what a call may use. If too little is left only because of calls in progress, wait for them."""
        budget = self._access.budget
        if budget is None:
            return Reservation(0.0)
        while True:
            output = asked or self._room(model, input, answers)
            amount = self._amount(model, input, output * answers)
            if output < min(asked or LEAST_OUTPUT, LEAST_OUTPUT) or self.spent + amount > budget.amount:
                raise RefusedError(
                    403,
                    "budget_exceeded",
                    f"This run's budget is {budget}, of which {self.spent:.6g} are used. This call could use up to "
                    f"{amount:.6g}, and is not made. If that is too much, ask for fewer output tokens or send less.",
                )
            if self.spent + self.reserved + amount <= budget.amount:
                self.reserved += amount
                return Reservation(amount, None if asked else output)
            self._changed = asyncio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()

    def _room(self, model: str, input: int, answers: int) -> int:
        """How long an answer may be if its request does not say: the usual limit, or what is left."""
        price, budget = self._access.prices.get(model), self._access.budget
        usual = min(USUAL_OUTPUT, (price and price.max_output) or USUAL_OUTPUT)
        if budget is None:
            return usual
        left = budget.amount - self.spent - self._amount(model, input, 0)
        each = self._amount(model, 0, 1) * answers
        return max(0, min(usual, int(left / each) if each else usual))

    def _amount(self, model: str, input: int, output: int) -> float:
        if self._access.budget is None or self._access.budget.unit == TOKENS:
            return input + output
        price = self._access.prices[model]
        return (input * price.dearest_input + output * price.output) / MILLION

    def can_pay(self, model: str, input: int, output: int) -> bool:
        """Whether the whole budget would be enough for one such call."""
        return self._access.budget is None or self._amount(model, input, output) <= self._access.budget.amount

    def release(self, reservation: Reservation, used: float) -> None:
        self.reserved -= reservation.amount
        self.spent += used
        self._changed.set()

    def settle(self, reservation: Reservation, call: Ended) -> float | None:
        """Count a finished call and return its cost. An answer of unknown usage uses up its whole reservation."""
        price = self._access.prices.get(call.model)
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

    def to_dict(self) -> dict[str, Any]:
        budget = self._access.budget
        return {
            **self.total.to_dict(),
            "refused": sum(self.refused.values()),
            "refusals": dict(self.refused),
            "budget": budget
            and {
                "limit": budget.amount,
                "unit": budget.unit,
                "used": round(self.spent, 8),
                "exceeded": "budget_exceeded" in self.refused,
            },
            "models": {model: count.to_dict() for model, count in self.models.items() if count.calls},
        }

    def write(self, **more: Any) -> None:
        """Write the counts to disk, if they have changed."""
        if not self._is_written:
            self._is_written = True
            write_whole(self._path, json.dumps(self.to_dict() | more, indent=1) + "\n")
