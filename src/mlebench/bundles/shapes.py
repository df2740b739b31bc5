"""JSON from a stranger: bounded, without surprises, and of the types that a record has."""

from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from mlebench.bundles.archive import BundleRefusedError, shown
from mlebench.errors import PrerequisiteError
from mlebench.records import Record
from mlebench.untrusted import JsonBoundsError, parse_json

Kind = TypeVar("Kind", bound=Record)
LARGEST_NUMBER = 1e300
LARGEST_INTEGER = 1 << 53


def parse(data: bytes, name: str) -> dict[str, Any]:
    """The JSON object that a member holds."""
    try:
        value = parse_json(data, object_pairs_hook=_object, parse_constant=_no_number)
    except ValueError as error:
        fault = error if isinstance(error, JsonBoundsError) else "is not JSON"
        raise BundleRefusedError(f"{name} {fault}") from None
    if not isinstance(value, dict):
        raise BundleRefusedError(f"{name} is not a JSON object")
    return value


def record_of(kind: type[Kind], data: bytes, name: str) -> Kind:
    """A record whose fields all have the right types."""
    try:
        record = kind.from_dict(parse(data, name), name)
    except BundleRefusedError:
        raise
    except PrerequisiteError as error:
        raise BundleRefusedError(shown(str(error))) from None
    for field, hint in _hints(kind).items():
        if not fits(getattr(record, field), hint):
            raise BundleRefusedError(f"{name}: `{field}` has the wrong type")
    return record


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is of a type. Numbers are finite, and small enough for any arithmetic."""
    if isinstance(hint, UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if hint is Any:
        return True
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_INTEGER
    if get_origin(hint) is list:
        return isinstance(value, list) and all(fits(item, get_args(hint)[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict) and all(fits(item, get_args(hint)[1]) for item in value.values())
    return isinstance(value, NoneType if hint is None else hint)


@cache
def _hints(kind: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two equal keys counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_number(_: str) -> None:
    raise ValueError("not a number")
