"""Unrelated programs: random, and valid."""

import json
import random
import re
from collections.abc import Sequence
from functools import cache


class _Writer:
    def __init__(self, seed: int | str):
        self.random = random.Random(f"code {seed}")

    def name(self) -> str:
        return self.random.choice(["rows", "model", "x", "score", "train", "fold", "frame", "y_hat"])

    def expression(self, depth: int = 3) -> str:
        if depth == 0:
            return self.random.choice([self.name(), "1", "'text'", "None", "0.5"])
        inner = [self.expression(depth - self.random.randint(1, depth)) for _ in range(3)]
        a, b, c = inner
        return self.random.choice(
            [
                f"({a} + {b})",
                f"{self.name()}({a}, {b})",
                f"{self.name()}.{self.name()}({a}, {self.name()}={b})",
                f"{self.name()}[{a}]",
                f"[{a} for {self.name()} in {b}]",
                f"({a} if {b} else {c})",
                f"({a} < {b})",
                f"(not {a})",
                f"{{{a}: {b}}}",
                f"({a}, {b}, {c})",
                f"(lambda {self.name()}: {a})",
                f"({a} and {b})",
                f"{self.name()}[{a}:{b}]",
            ]
        )

    def block(self, indent: str, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(indent + "    ", depth - 1)]

    def statement(self, indent: str = "", depth: int = 2) -> list[str]:
        one, two = self.expression(), self.expression(2)
        simple = [
            f"{self.name()} = {one}",
            f"{self.name()}.{self.name()} = {one}",
            f"{self.name()} += {one}",
            f"{self.name()}({one}, {two})",
            f"assert {one}",
            f"del {self.name()}[{two}]",
        ]
        heads = [
            f"if {one}:",
            f"for {self.name()} in {one}:",
            f"while {two}:",
            f"def {self.name()}({self.name()}_, *, {self.name()}={two}):",
            f"with {one} as {self.name()}:",
            f"class {self.name()}:",
        ]
        if depth == 0 or self.random.random() < 0.6:
            return [indent + self.random.choice(simple)]
        return [indent + self.random.choice(heads), *self.block(indent, depth)]


@cache
def program(seed: int | str, statements: int = 60) -> str:
    writer = _Writer(seed)
    return "\n".join(line for _ in range(statements) for line in writer.statement()) + "\n"


def renamed(code: str) -> str:
    names = ["rows", "model", "x", "score", "train", "fold", "frame", "y_hat"]
    return re.sub(r"\b(" + "|".join(names) + r")(_?)\b", lambda found: f"other_{found[1]}{found[2]}", code)


def notebook(cells: Sequence[str], **more: object) -> str:
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# A title"}, *made], "nbformat": 4, **more})
