"""The parts of pages that are generated: the options of commands, the types of records, pages of the API."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import cast

import click
import msgspec
from msgspec import inspect

import mlebench.records

API = (
    "registry", "data", "grade", "run", "report", "bundles", "integrity", "validate", "web", "kit", "kit.twins",
    "metrics", "errors",
)  # fmt: skip
NAMES = {
    inspect.AnyType: "anything",
    inspect.BoolType: "true or false",
    inspect.FloatType: "number",
    inspect.IntType: "whole number",
    inspect.NoneType: "null",
    inspect.StrType: "text",
}
LARGEST = 1e9  # limits beyond this only keep arithmetic safe


def options(verb: str) -> str:
    """Collapsed tables of the options of a verb and of its commands, with the texts of `--help`."""
    module = import_module(f"mlebench.cli.{verb.replace('-', '_')}")
    return "\n\n".join(_options(f"mlebench {verb}", module.command))


def _options(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    records = [parameter.get_help_record(context) for parameter in command.params]
    lines = [
        f'??? info "`{name}`: usage and options"',
        "",
        f"    `{' '.join((name, *command.collect_usage_pieces(context)))}`",
        "",
    ]
    rows = [f"    | `{_cell(names)}` | {_cell(text)} |" for names, text in filter(None, records) if text]
    if rows:
        lines += ["    | option | meaning |", "    |---|---|", *rows]
    yield "\n".join(lines)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            child = command.get_command(context, inner)
            if child:
                yield from _options(f"{name} {inner}", child)


def types() -> str:
    """A table for each type of the records: its fields, their types, and what they are if left out."""
    return "\n\n".join(_table(kind) for module in _record_modules() for kind in _structs(module))


def _record_modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(mlebench.records.__path__):
        yield import_module(f"mlebench.records.{found.name}")


def _structs(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    for value in vars(module).values():
        own = getattr(value, "__module__", None) == module.__name__
        if own and isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__name__ != "Record":
            yield value


def _table(kind: type[msgspec.Struct]) -> str:
    info = cast(inspect.StructType, inspect.type_info(kind))
    rows = [f"| `{field.encode_name}` | {_cell(_type(field.type))} | {_default(field)} |" for field in info.fields]
    text = (kind.__doc__ or "").strip()
    return "\n".join([f"### {kind.__name__}", "", text, "", "| field | type | default |", "|---|---|---|", *rows])


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.encode_name == "mlebench":
        return "this version"
    if field.default is not msgspec.NODEFAULT:
        default = field.default
    elif field.default_factory in (list, dict):
        default = field.default_factory()
    else:
        return "set when written"
    return f"`{_cell(msgspec.json.encode(default).decode())}`"


def _type(info: inspect.Type) -> str:
    if isinstance(info, inspect.UnionType):
        return " or ".join(map(_type, info.types))
    if isinstance(info, inspect.LiteralType):
        return " or ".join(f"`{value}`" for value in info.values)
    if isinstance(info, inspect.CollectionType):
        return f"list of {_type(info.item_type)}"
    if isinstance(info, inspect.DictType):
        return f"object: {_type(info.value_type)} for each name"
    if isinstance(info, inspect.StructType):
        return f"[{info.cls.__name__}](#{info.cls.__name__.lower()})"
    if isinstance(info, inspect.Metadata):
        return _type(info.type)
    return NAMES.get(type(info), "object") + _limits(info)


def _limits(info: inspect.Type) -> str:
    limits = [("≥", getattr(info, "ge", None)), (">", getattr(info, "gt", None)), ("≤", getattr(info, "le", None))]
    return "".join(f" {sign} {limit:,g}" for sign, limit in limits if limit is not None and abs(limit) <= LARGEST)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def api(module: str) -> str:
    """A page that mkdocstrings fills with the docstrings of a package."""
    return f"# mlebench.{module}\n\n::: mlebench.{module}\n"
