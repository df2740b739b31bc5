"""JSON from a stranger: bounded, without surprises, and of the types that a record has."""

from typing import Any, TypeVar

from mlebench.bundles.archive import BundleRefusedError, printable_name
from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import JsonBoundsError, parse_json
from mlebench.records import Record
from mlebench.records.base import from_dict

Kind = TypeVar("Kind", bound=Record)


def parse_object(data: bytes, name: str) -> dict[str, Any]:
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
    """The record that a member holds."""
    try:
        return from_dict(parse_object(data, name), kind, name)
    except BundleRefusedError:
        raise
    except PrerequisiteError as error:
        raise BundleRefusedError(printable_name(str(error))) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two equal keys counts."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _no_number(_: str) -> None:
    raise ValueError("not a number")
