"""Times and sizes as people write them (24h, 90m, 1h30m, 3600; 440g, 512MiB), and as they read them."""

import math
import re
from typing import Any

import click

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
UNITS = "kmgt"


class Duration(click.ParamType):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip().lower()
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
        if parts and "".join(map("".join, parts)) == text:
            seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
        elif re.fullmatch(r"\d+(\.\d+)?", text):
            seconds = float(text)
        else:
            self.fail(f"{value!r} is not a time; write 24h, 90m or a number of seconds", param, ctx)
        if seconds <= 0:
            self.fail("a time must be greater than 0", param, ctx)
        return seconds


class PositiveNumber(click.FloatRange):
    """A number above 0 that is neither infinite nor NaN, as click's own range would let pass."""

    def __init__(self, max: float | None = None):
        super().__init__(min=0, min_open=True, max=max)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class Size(click.ParamType):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int | float):
            return int(value)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not a size; write 440g, 512m or a number of bytes", param, ctx)
        number, unit, binary = match.groups()
        power = UNITS.index(unit) + 1 if unit else 0
        # Docker's `4g` means gibibytes, and so does ours; `4GB` means gigabytes.
        base = 1000 if unit and not binary and str(value).strip().lower().endswith("b") else 1024
        size = int(float(number) * base**power)
        if size < 1:
            self.fail("a size must be greater than 0", param, ctx)
        return size


SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(size: int | None) -> str:
    """A number of bytes, for people."""
    if size is None:
        return "-"
    power = _power(size)
    return f"{size / 1000**power:.3g} {SIZE_UNITS[power]}"


def amount_text(done: int, total: int | None, *, more: bool = False) -> str:
    """Bytes done out of the total, for people; `more` says that more will come on top of the total."""
    if total is None:
        return size_text(done)
    power = _power(total)
    places = 1 if power else 0
    return f"{done / 1000**power:.{places}f} of {total / 1000**power:.{places}f}{'+' * more} {SIZE_UNITS[power]}"


def _power(size: int) -> int:
    """The unit in which three digits are enough, even after rounding."""
    return next((power for power in range(len(SIZE_UNITS) - 1) if size < 999.5 * 1000**power), len(SIZE_UNITS) - 1)


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
