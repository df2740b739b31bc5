"""JSON over many lines, as Python prints it with `indent`, quickly.

With an indent Python's encoder is slow and takes many times the memory of what it prints. Its quick encoder has no
indent but accepts any text as the separator between values, so it prints flat records, many at a time. No text inside
JSON contains a raw line break, so every line break is layout.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

RECORDS = 4096  # printed at a time


def indented_json(value: Any, indent: int, *, sort_keys: bool = False) -> bytes:
    """The bytes that `json.dumps` gives."""
    stream = io.BytesIO()
    for piece in _Printer(indent, sort_keys).pieces(value, 0):
        stream.write(piece.encode("ascii"))
    return stream.getvalue()


def encode_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """JSON as Python prints it: ASCII, `, ` and `: ` between items."""
    if indent is not None:
        return indented_json(value, indent, sort_keys=sort_keys)
    return json.dumps(value, sort_keys=sort_keys).encode("ascii")


class _Printer:
    def __init__(self, indent: int, sort_keys: bool):
        self._indent = indent
        self._sort_keys = sort_keys

    def pieces(self, value: Any, depth: int) -> Iterator[str]:
        """A value at this depth whose first line is already indented."""
        inner, outer = (f"\n{' ' * self._indent * level}" for level in (depth + 1, depth))
        if type(value) is list and value:
            yield f"[{inner}"
            for start in range(0, len(value), RECORDS):
                yield f",{inner}" if start else ""
                yield self._items(value[start : start + RECORDS], inner)
            yield f"{outer}]"
        elif type(value) is dict and value and all(type(key) is str for key in value):
            before = "{"
            for key in sorted(value) if self._sort_keys else value:
                yield f"{before}{inner}{json.dumps(key)}: "
                yield from self.pieces(value[key], depth + 1)
                before = ","
            yield f"{outer}}}"
        else:
            yield json.dumps(value, indent=self._indent, sort_keys=self._sort_keys).replace("\n", outer)

    def _items(self, items: list[Any], between: str) -> str:
        """Items of a list, each at the start of a line."""
        if all(type(item) is dict and item for item in items):
            within = between + " " * self._indent
            text = json.dumps(items, separators=(f",{within}", ": "), sort_keys=self._sort_keys)
            if ": {" not in text and ": [" not in text:  # nothing nested, nor anything that looks nested
                records = text[2:-2].replace(f"}},{within}{{", f"{between}}},{between}{{{within}")
                return f"{{{within}{records}{between}}}"
        return json.dumps(items, indent=self._indent, sort_keys=self._sort_keys)[2 + self._indent : -2].replace(
            f"\n{' ' * self._indent}", between
        )
