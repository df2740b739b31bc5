"""What tokens cost: the table in the package, and the user's own, which takes precedence."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError

TABLE = Path(__file__).with_name("prices.json")
MILLION = 1_000_000
SHORT, LONG = "short", "long"  # how long a provider caches input
# Providers add a date to a model's name for each version; all versions have the model's price.
_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True)
class TokenUsage:
    """What a call used. `input` includes cached and written ones, `output` includes reasoning. None: unknown."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    written: int = 0  # input that the provider put into its cache, which may cost more
    written_long: int = 0  # those of `written` that it keeps for an hour

    @property
    def is_known(self) -> bool:
        return self.input is not None and self.output is not None


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None  # by default the same as other input
    cache_write: float | None = None  # likewise
    cache_write_long: float | None = None  # by default the same as `cache_write`
    max_output: int | None = None  # the most tokens the model returns in one answer

    def cost(self, tokens: TokenUsage) -> float:
        cached, short = tokens.cached or 0, tokens.written - tokens.written_long
        plain = max(0, (tokens.input or 0) - cached - tokens.written)
        write = self.input if self.cache_write is None else self.cache_write
        dollars = (
            plain * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + short * write
            + tokens.written_long * (write if self.cache_write_long is None else self.cache_write_long)
            + (tokens.output or 0) * self.output
        )
        return dollars / MILLION

    def to_dict(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def dearest_input(self, cache: str | None) -> float:
        """The most that a token of input can cost, if the provider caches it for a short or a long time, or not."""
        write = self.input if self.cache_write is None else self.cache_write
        longer = write if self.cache_write_long is None else self.cache_write_long
        return max(self.input, {None: 0.0, SHORT: write, LONG: max(write, longer)}[cache])


def read_prices(path: Path = TABLE) -> dict[str, Price]:
    """The prices of a file: `{"models": {NAME: {"input": …, "cached": …, "output": …}}}`."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise PrerequisiteError(f"{path} is not JSON: {error}") from None
    models = data.get("models") if isinstance(data, dict) else None
    if not isinstance(models, dict):
        raise PrerequisiteError(f"{path} needs an object `models`, with the prices of each model")
    return {name: price_of(entry, f"{path}: {name}") for name, entry in models.items()}


def price_of(entry: Any, label: str) -> Price:
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys():
        raise PrerequisiteError(f"{label} needs `input` and `output`, in US dollars per million tokens")
    if unknown := sorted(entry.keys() - Price.__annotations__.keys()):
        raise PrerequisiteError(f"{label}: `{unknown[0]}` is not known; known are {', '.join(Price.__annotations__)}")
    for name, value in entry.items():
        if not _is_amount(value):
            raise PrerequisiteError(f"{label}: `{name}` must be a number, not {value!r}")
    return Price(**entry)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def find_price(model: str, table: Mapping[str, Price]) -> Price | None:
    return table.get(model) or table.get(_VERSION.sub("", model))
