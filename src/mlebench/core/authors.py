"""Mistakes of a competition's author: what is wrong, in which file and line.

What authors call is `checked`: it takes only what its annotations say. Where a competition's code is called,
`author_errors` adds the location to what the kit refuses, and says which other exceptions are the author's.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from inspect import Parameter, Signature, isclass, signature, unwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from mlebench.core.errors import (
    CompetitionError,
    InvalidSubmissionError,
    PrerequisiteError,
    RawDataError,
    StorageError,
)
from mlebench.core.suggestions import did_you_mean

_P = ParamSpec("_P")
_R = TypeVar("_R")
# Parts of the package that only compute or read: whatever they raise is the fault of their caller.
_LIBRARIES = ("metrics", "utils", "grade_helpers", "competitions")
_OF_NAMES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
_LONGEST = 300  # characters of an exception's own text
_ADVICE = {"DataFrame": "`Table.from_pandas(frame)` makes a table of it", "Table": "take a column of it: `table[name]`"}
_KINDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "bytes": "bytes",
    "Sequence": "a list",
    "Iterable": "a list",
    "Mapping": "a dictionary",
    "ndarray": "an array",
}


@contextmanager
def author_errors() -> Iterator[None]:
    """Wraps a call of a competition's code: the author's mistakes are CompetitionErrors with file and line.

    The kit says so itself when it is used wrongly. Any other exception is the author's if the competition's code
    raised it, or a library that it called. What the kit raises without saying so is a bug of ours, and passes.
    """
    try:
        yield
    except (CompetitionError, RawDataError) as error:
        error.location = error.location or location_in_code(error)
        raise
    except (PrerequisiteError, InvalidSubmissionError, StorageError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        of_disk = isinstance(error, OSError) and error.errno is not None and not isinstance(error, _OF_NAMES)
        if of_disk or (location := location_in_code(error, raised_there=True)) is None:
            raise
        raise CompetitionError(_in_words(error), location) from error


def location_in_code(error: BaseException, *, raised_there: bool = False) -> str | None:
    """File and line of a competition's code that led to an exception or, on request, that raised it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        package, room, *inner = [*frame.f_globals.get("__name__", "").split("."), ""]
        if package == "mlebench" and room == "competitions" and len(inner) > 1:
            return f"{Path(frame.f_code.co_filename).name}, line {line}"
        if raised_there and package == "mlebench" and room not in _LIBRARIES:
            return None
    return None


def location_of_function(function: Callable[..., Any]) -> str | None:
    """File and line where a function begins; None if it is not written in Python."""
    code = getattr(unwrap(function), "__code__", None)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if code else None


def require_parameters(function: Callable[..., Any], *names: str) -> None:
    """Refuse a function of a competition that cannot be called with these arguments, in this order."""
    try:
        signature(function).bind(*names)
    except TypeError:
        name = function.__name__
        fault = f"`{name}` cannot be called as `{name}({', '.join(names)})`: give it these parameters"
        raise CompetitionError(fault, location_of_function(function)) from None


def _in_words(error: BaseException) -> str:
    """An exception in one line, with Python's guess at what was meant."""
    if isinstance(error, SystemExit):
        return f"the code called sys.exit({error.code!r}): let it raise an exception, or return"
    summary = traceback.TracebackException.from_exception(error)
    summary.__notes__ = None
    (*_, line) = summary.format_exception_only()
    return " ".join(line.split())[:_LONGEST]


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, refusing arguments that its annotations rule out: the author of a competition wrote them."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        declared, hints = _declared(function)
        try:
            bound = declared.bind(*args, **kwargs)
        except TypeError as error:
            raise CompetitionError(f"`{function.__name__}`: {error}{_meant(declared, kwargs)}") from None
        for name, value in bound.arguments.items():
            values: Sequence[Any] = value if declared.parameters[name].kind is Parameter.VAR_POSITIONAL else (value,)
            for item in values if name in hints else ():
                if not any(_fits(item, arm) for arm in _arms(hints[name])):
                    raise CompetitionError(_argument_fault(function.__name__, name, item, hints[name]))
        return function(*args, **kwargs)

    return call


@cache
def _declared(function: Callable[..., Any]) -> tuple[Signature, dict[str, Any]]:
    declared = signature(function)
    named = {name for name, item in declared.parameters.items() if item.kind is not Parameter.VAR_KEYWORD}
    return declared, {name: hint for name, hint in get_type_hints(function).items() if name in named}


def _meant(declared: Signature, kwargs: Mapping[str, Any]) -> str:
    unknown = [name for name in kwargs if name not in declared.parameters]
    return f"; {did_you_mean(unknown[0], [name for name in declared.parameters if name != 'self'])}" if unknown else ""


def _argument_fault(function: str, name: str, value: Any, hint: Any) -> str:
    """What an argument should be, and what it is."""
    arms = [arm for arm in _arms(hint) if arm is not NoneType]
    words = [word for arm in arms if get_origin(arm) is Literal for word in get_args(arm)]
    kinds = [*map(repr, words), *(_name(arm) for arm in arms if get_origin(arm) is not Literal)]
    kind = type(value).__name__
    actual, hints = "None" if value is None else _with_article(kind), [_ADVICE[kind]] if kind in _ADVICE else []
    if isinstance(value, str):
        actual, hints = f"the text {value!r}"[:_LONGEST], [did_you_mean(value, words)] if words else hints
    wanted = " or ".join(dict.fromkeys(kinds)) if len(kinds) < 4 else f"one of {', '.join(kinds)}"
    return f"`{function}` takes {wanted} as `{name}`, not {': '.join([actual, *hints])}"


def _arms(hint: Any) -> list[Any]:
    """The kinds of values that an annotation allows."""
    if isinstance(hint, TypeVar):
        return [*hint.__constraints__] or [hint.__bound__ or Any]
    if get_origin(hint) in (Union, UnionType):
        return [arm for part in get_args(hint) for arm in _arms(part)]
    return [hint]


def _fits(value: Any, hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if type(value).__module__ == "numpy" and not hasattr(value, "__len__"):
        value = value.item()
    if kind is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if not isclass(kind) or kind is Any or (kind.__module__ == "typing" and getattr(kind, "_is_protocol", False)):
        return True
    if kind in (Sequence, Iterable) or kind.__name__ == "ndarray":  # a text is a sequence, but never meant as one
        is_array = isinstance(value, (kind, list, tuple)) or hasattr(value, "__array__")
        items: Any = value if isinstance(value, list | tuple) and get_args(hint) == (str,) else ()
        return is_array and not isinstance(value, str) and all(isinstance(item, str) for item in items)
    wider = {float: (float, int), bytes: (bytes, bytearray, memoryview)}
    return isinstance(value, wider.get(kind, kind))


def _name(hint: Any) -> str:
    """A kind of value, as an author reads it."""
    kind = get_origin(hint) or hint
    of_text = " of texts" if get_args(hint) == (str,) else ""
    return (_KINDS.get(kind.__name__) or _with_article(kind.__name__)) + of_text


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOaeiou' else 'a'} {kind}"
