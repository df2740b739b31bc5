"""Trains on train.csv, predicts test.csv and writes a submission, with only the standard library.

The model is additive: each column is cut into bins, each bin has an effect, and the effects are fitted in turn.
"""

import bisect
import csv
import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

Row = dict[str, str]
Model = tuple[float, list[dict[Hashable, float]]]
DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
OUTPUT = Path(os.environ.get("OUTPUT", "submission.csv"))
BINS, LEVELS, ROUNDS, CAUTION = 8, 40, 10, 5.0


def read(name: str) -> list[Row]:
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def coder(column: str, rows: list[Row]) -> Callable[[str], Hashable] | None:
    """How a value of this column becomes a bin; None for a column with too many names in it."""
    values = [row[column] for row in rows if row[column]]
    numbers = [value for value in map(number, values) if value is not None]
    if len(numbers) == len(values):
        ordered = sorted(numbers)
        edges = sorted({ordered[len(ordered) * part // BINS] for part in range(1, BINS)}) if ordered else []
        return lambda text: None if (value := number(text)) is None else bisect.bisect(edges, value)
    levels = {value for value, count in Counter(values).items() if count > 2}
    return (lambda text: text if text in levels else None) if 0 < len(levels) <= LEVELS else None


def fit(binned: list[list[Hashable]], wanted: list[float]) -> Model:
    """The mean, and for each column the effect of each bin."""
    mean = sum(wanted) / len(wanted)
    left = [value - mean for value in wanted]
    effects: list[dict[Hashable, float]] = [{} for _ in binned]
    for _ in range(ROUNDS):
        for column, effect in zip(binned, effects, strict=True):
            sums: dict[Hashable, float] = {}
            for bin, rest in zip(column, left, strict=True):
                sums[bin] = sums.get(bin, 0.0) + rest
            steps = {bin: sums[bin] / (count + CAUTION) for bin, count in Counter(column).items()}
            for bin, step in steps.items():
                effect[bin] = effect.get(bin, 0.0) + step
            left = [rest - steps[bin] for bin, rest in zip(column, left, strict=True)]
    return mean, effects


def predict(model: Model, binned: list[list[Hashable]]) -> list[float]:
    mean, effects = model
    rows = zip(*binned, strict=True)
    return [mean + sum(effect.get(bin, 0.0) for effect, bin in zip(effects, row, strict=True)) for row in rows]


def solve(target: str, sample: list[Row], train: list[Row], test: list[Row]) -> Sequence[float | str]:
    """A prediction for each row of test: a number where the sample has one with a point, otherwise a name."""
    shared = [column for column in test[0] if column in train[0] and column not in sample[0]]
    coders = {column: code for column in shared if (code := coder(column, train))}
    seen, unseen = ([[code(row[name]) for row in rows] for name, code in coders.items()] for rows in (train, test))
    known = [row[target] for row in train]
    if "." in sample[0][target]:
        numbers = [float(value) for value in known]
        low, high = min(numbers), max(numbers)
        return [min(max(value, low), high) for value in predict(fit(seen, numbers), unseen)]
    scores: dict[str, list[float]] = {}
    for name in sorted(set(known)):
        scores[name] = predict(fit(seen, [float(value == name) for value in known]), unseen)
    return [max(scores, key=lambda name: scores[name][row]) for row in range(len(test))]


def error(predicted: Sequence[float | str], rows: list[Row], target: str) -> float:
    """Mean distance of numbers, or the share of wrong names."""
    pairs = [(guess, row[target]) for guess, row in zip(predicted, rows, strict=True)]
    wrong = [abs(guess - float(true)) if isinstance(guess, float) else float(guess != true) for guess, true in pairs]
    return sum(wrong) / len(wrong)


def main() -> None:
    sample, train, test = read("sample_submission.csv"), read("train.csv"), read("test.csv")
    key, *targets = sample[0]
    held, rest = train[: len(train) // 5], train[len(train) // 5 :]
    errors = [error(solve(target, sample, rest, held), held, target) for target in targets]
    print(f"Validation error: {sum(errors) / len(errors):.4f}")
    predicted = [solve(target, sample, train, test) for target in targets]
    with OUTPUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([key, *targets])
        writer.writerows([row[key], *values] for row, *values in zip(test, *predicted, strict=True))
    print(f"{OUTPUT} has {len(test)} rows")


if __name__ == "__main__":
    main()
