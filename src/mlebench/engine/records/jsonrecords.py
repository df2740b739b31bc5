"""Lists of millions of records in JSON: kept field by field, so that there is no object for each record.

msgspec reads and prints records that all have the same fields with texts, whole numbers, true, false and null in them.
Python's own parser and printer do the rest. Values and bytes are the same either way.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Any, overload

import msgspec

from mlebench.engine.progress import SILENT_STAGE, Stage
from mlebench.engine.records.ascii import in_ascii
from mlebench.engine.records.record_source import no_garbage

PLAIN = int | str | bool | None
_PLAIN_KINDS = {int, str, bool, NoneType}
_ABSENT = object()
_print = msgspec.json.Encoder().encode


@lru_cache
def record_type(kinds: tuple[tuple[str, Any], ...], only: bool = False) -> type[msgspec.Struct]:
    """Records with these fields, which hold this; records that are read may have others too, unless `only`.

    Raises ValueError if a name contains a quote, a backslash or a control character.
    """
    fields = [(f"field_{number}", kind) for number, (_, kind) in enumerate(kinds)]
    names = {field: name for (field, _), (name, _) in zip(fields, kinds, strict=True)}
    return msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=only, gc=False)


class Records(Sequence[dict[str, Any]]):
    """Records, field by field. A record has its fields in the order in which these first appear in the list."""

    def __init__(self, fields: dict[str, list[Any]], count: int):
        self._fields = fields
        self._count = count

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]]) -> "Records":
        names = dict.fromkeys(name for record in records for name in record)
        return cls({name: [record.get(name, _ABSENT) for record in records] for name in names}, len(records))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> "Records": ...
    def __getitem__(self, index: int | slice) -> "dict[str, Any] | Records":
        if isinstance(index, slice):
            fields = {name: values[index] for name, values in self._fields.items()}
            return Records(fields, len(range(self._count)[index]))
        row = range(self._count)[index]  # raises IndexError even if there is no field
        values = ((name, values[row]) for name, values in self._fields.items())
        return {name: value for name, value in values if value is not _ABSENT}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records | list) and [*self] == [*other]

    def values(self, name: str) -> list[Any]:
        """A field that all records have."""
        values = self._fields[name]
        if object in set(map(type, values)):  # the type of the marker for an absent value
            raise KeyError(name)
        return values

    def take(self, rows: Sequence[int]) -> "Records":
        """The records with these numbers."""
        if len(rows) < 2:  # for which `itemgetter` returns no tuple
            return Records({name: [values[row] for row in rows] for name, values in self._fields.items()}, len(rows))
        taken = itemgetter(*rows)
        return Records({name: [*taken(values)] for name, values in self._fields.items()}, len(rows))

    def with_values(self, **fields: Sequence[Any]) -> "Records":
        """Return a copy with other values in some fields."""
        return Records(self._fields | {name: [*values] for name, values in fields.items()}, self._count)

    def as_json(self, indent: int, sort_keys: bool) -> bytes | None:
        """These records as Python prints them; None if they hold something that has to be left to it."""
        names = tuple(sorted(self._fields) if sort_keys else self._fields)
        columns = [self._fields[name] for name in names]
        if not columns or not all(_PLAIN_KINDS.issuperset(map(type, column)) for column in columns):
            return None
        try:
            text = _print([*map(record_type(tuple((name, Any) for name in names)), *columns)])
        except ValueError:  # half a character, or a name that msgspec does not accept
            return None
        return msgspec.json.format(in_ascii(text.replace(b"\x7f", b"\\u007f")), indent=indent)


def read_with_records(text: bytes, lists: Sequence[str], stage: Stage = SILENT_STAGE) -> dict[str, Any]:
    """A JSON object, with `Records` for those of its fields that are lists of records; the stage is its bytes."""
    try:
        parts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        document = json.loads(text.decode("utf-8"))
        return document | {name: Records.of(document[name]) for name in lists}
    document = {}
    with no_garbage():
        for name, part in parts.items():
            document[name] = _read_list(part) if name in lists else _loads(part)
            stage.advance(len(part))
    return document


def _read_list(part: msgspec.Raw) -> Records:
    try:
        first = msgspec.json.decode(part, type=list[msgspec.Raw])[:1]
        names = [name for record in first for name in msgspec.json.decode(record, type=dict[str, PLAIN])]
        kind = record_type(tuple((name, PLAIN) for name in names), only=True)
        records = msgspec.json.decode(part, type=list[kind])
    except (msgspec.MsgspecError, ValueError):
        return Records.of(_loads(part))
    columns = ([*map(attrgetter(field), records)] for field in kind.__struct_fields__)
    return Records(dict(zip(names, columns, strict=True)), len(records))


def _loads(part: msgspec.Raw) -> Any:
    return json.loads(bytes(part).decode("utf-8"))
