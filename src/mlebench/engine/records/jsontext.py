"""JSON as Python prints it, in pieces, and quickly where there is an indent.

With an indent Python's encoder is slow and takes many times the memory of what it prints. Its quick encoder has no
indent but accepts any text as the separator between values, so it prints flat records, many at a time. No text inside
JSON contains a raw line break, so every line break is layout.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from mlebench.engine.records.jsonrecords import Records

RECORDS = 4096  # printed at a time


def encode_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """JSON as Python prints it: ASCII, and without an indent `, ` and `: ` between items."""
    return b"".join(json_pieces(value, indent=indent, sort_keys=sort_keys))


def json_pieces(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> Iterator[bytes]:
    """Yield the JSON text in pieces."""
    printer = _JsonPrinter(sort_keys) if indent is None else _IndentingPrinter(sort_keys, indent)
    for piece in printer.pieces(value, 0):
        yield piece if isinstance(piece, bytes) else piece.encode("ascii")


class _JsonPrinter:
    """Prints on one line."""

    def __init__(self, sort_keys: bool):
        self._sort_keys = sort_keys

    def pieces(self, value: Any, depth: int) -> Iterator[str | bytes]:
        """A value at this depth; its first line is already indented."""
        before, between, after = self._layout(depth)
        if type(value) in (list, Records) and value:
            yield f"[{before}"
            for start in range(0, len(value), RECORDS):
                yield between if start else ""
                yield self._items(value[start : start + RECORDS], between)
            yield f"{after}]"
        elif type(value) is dict and value and all(type(key) is str for key in value):
            yield f"{{{before}"
            for number, key in enumerate(sorted(value) if self._sort_keys else value):
                yield f"{between if number else ''}{json.dumps(key)}: "
                yield from self.pieces(value[key], depth + 1)
            yield f"{after}}}"
        else:
            yield self._print(value).replace("\n", after)

    def _layout(self, depth: int) -> tuple[str, str, str]:  # noqa: ARG002
        """What comes before the first item of a list or record, between two items and after the last."""
        return "", ", ", ""

    def _items(self, items: Sequence[Any], between: str) -> str | bytes:  # noqa: ARG002
        return self._print([*items])[1:-1]

    def _print(self, value: Any) -> str:
        return json.dumps(value, sort_keys=self._sort_keys, default=list)


class _IndentingPrinter(_JsonPrinter):
    def __init__(self, sort_keys: bool, indent: int):
        super().__init__(sort_keys)
        self._indent = indent

    def _print(self, value: Any) -> str:
        return json.dumps(value, indent=self._indent, sort_keys=self._sort_keys, default=list)

    def _layout(self, depth: int) -> tuple[str, str, str]:
        inner, outer = (f"\n{' ' * self._indent * level}" for level in (depth + 1, depth))
        return inner, f",{inner}", outer

    def _items(self, items: Sequence[Any], between: str) -> str | bytes:
        """Items of a list, each at the start of a line."""
        line = between.removeprefix(",")
        if isinstance(items, Records) and self._indent and (text := items.as_json(self._indent, self._sort_keys)):
            return text[2 + self._indent : -2].replace(b"\n" + b" " * self._indent, line.encode())
        items = [*items]
        if all(type(item) is dict and item for item in items):
            within = line + " " * self._indent
            text = json.dumps(items, separators=(f",{within}", ": "), sort_keys=self._sort_keys)
            if ": {" not in text and ": [" not in text:  # nothing nested, nor anything that looks nested
                records = text[2:-2].replace(f"}},{within}{{", f"{line}}},{line}{{{within}")
                return f"{{{within}{records}{line}}}"
        return self._print(items)[2 + self._indent : -2].replace(f"\n{' ' * self._indent}", line)
