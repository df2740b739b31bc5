"""A script: a list of answers, each with its conditions. docs/guides/models.md describes the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.gateway.probe import PROMPT

_INCLUDE = re.compile(r"^([ \t]*)<<([\w.-]+)>>$", re.MULTILINE)
KEYS: dict[str, tuple[type, ...]] = {
    "when": (dict, str),
    "repeat": (bool,),
    "text": (str,),
    "tool_calls": (list,),
    "usage": (dict,),
    "status": (int,),
    "headers": (dict,),
    "delay": (int, float),
    "disconnect": (bool,),
    "garbage": (str,),
}
CONDITIONS = {"last": str, "prompt": str, "model": str, "tool": str, "turn": int}
_USAGE = ("input", "cached", "output", "reasoning")


@dataclass(frozen=True)
class ScriptedRequest:
    """What a request says, whichever API it came through."""

    model: str
    stream: bool
    with_usage: bool  # whether a stream should end with its usage
    turn: int  # how often the model has answered in this conversation
    last: str  # the last message that is not the model's own
    prompt: str  # all text
    tools: tuple[str, ...]  # what it may call


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any] | str  # a text is sent verbatim, valid or not


@dataclass(frozen=True)
class ScriptedAnswer:
    number: int = 0
    when: Mapping[str, Any] = field(default_factory=dict)
    repeat: bool = False
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    disconnect: bool = False
    garbage: str | None = None

    def fits(self, request: ScriptedRequest) -> bool:
        return all(_holds(key, wanted, request) for key, wanted in self.when.items())

    def tokens(self, request: ScriptedRequest) -> dict[str, int]:
        """What the script says; otherwise an estimate of four characters per token."""
        said = self.text + "".join(str(call.arguments) for call in self.tool_calls)
        guess = {"input": len(request.prompt) // 4 + 1, "cached": 0, "output": len(said) // 4 + 1, "reasoning": 0}
        return guess | dict(self.usage)


PROBED = ScriptedAnswer(text="Yes.")
USED_UP = ScriptedAnswer(text="The script has no answer to this request.", status=400)


def _holds(key: str, wanted: Any, request: ScriptedRequest) -> bool:
    if key == "turn":
        return request.turn == wanted
    if key == "tool":
        return wanted in request.tools
    return re.search(wanted, getattr(request, key)) is not None


class Script:
    """Gives the first matching answer that is unused or may be repeated."""

    def __init__(self, answers: list[ScriptedAnswer]):
        self._left = list(answers)

    def answer(self, request: ScriptedRequest) -> ScriptedAnswer:
        if request.prompt == PROMPT:  # a probe before several runs, which must not use up an agent's answer
            return PROBED
        for answer in self._left:
            if answer.fits(request):
                if not answer.repeat:
                    self._left.remove(answer)
                return answer
        return USED_UP


def shipped() -> dict[str, Path]:
    """The scripts that come with the package, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "scripts").glob("*.yaml"))}


def read_script(named: str) -> Script:
    """The script at a path, or the shipped one of that name."""
    path = shipped().get(named) or Path(named)
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        names = ", ".join(shipped())
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}; built-in scripts are {names}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PrerequisiteError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, list) or not content:
        raise PrerequisiteError(f"{path} must be a list of answers")
    return Script([_answer(path, number, item) for number, item in enumerate(content, start=1)])


def _answer(path: Path, number: int, item: Any) -> ScriptedAnswer:
    label = f"{path}: answer {number}"
    if not isinstance(item, dict):
        raise PrerequisiteError(f"{label} must hold keys and values, not {item!r}")
    for key, value in item.items():
        if key not in KEYS:
            raise PrerequisiteError(f"{label}: `{key}` is not known; known are {', '.join(KEYS)}")
        if not isinstance(value, KEYS[key]) or (isinstance(value, bool) and bool not in KEYS[key]):
            raise PrerequisiteError(f"{label}: `{key}` must be {KEYS[key][0].__name__}, not {value!r}")
    values = _with_files(path, item)
    values["when"] = _when(label, values.get("when", {}))
    values["tool_calls"] = tuple(_tool_call(label, call) for call in values.get("tool_calls", []))
    if wrong := [key for key, count in values.get("usage", {}).items() if key not in _USAGE or type(count) is not int]:
        raise PrerequisiteError(f"{label}: `usage.{wrong[0]}`: give whole numbers for {', '.join(_USAGE)}")
    if not 200 <= values.get("status", 200) <= 599:
        raise PrerequisiteError(f"{label}: `status` must be from 200 to 599")
    values["headers"] = {str(name): str(value) for name, value in values.get("headers", {}).items()}
    return ScriptedAnswer(
        number=number, **{item.name: values[item.name] for item in fields(ScriptedAnswer) if item.name in values}
    )


def _when(label: str, when: Any) -> dict[str, Any]:
    when = {"last": when} if isinstance(when, str) else when
    for key, value in when.items():
        if key not in CONDITIONS or type(value) is not CONDITIONS[key]:
            raise PrerequisiteError(
                f"{label}: `when.{key}`: give a text for last, prompt, model, tool or a number for turn"
            )
        try:
            re.compile(value if CONDITIONS[key] is str else "")
        except re.error as error:
            raise PrerequisiteError(f"{label}: `when.{key}` is not a regular expression: {error}") from None
    return when


def _tool_call(label: str, call: Any) -> ToolCall:
    match call:
        case {"name": str(name), "arguments": dict() | str() as arguments, **rest} if not rest:
            return ToolCall(name, arguments)
        case {"name": str(name), **rest} if not rest:
            return ToolCall(name, {})
    raise PrerequisiteError(f"{label}: a tool call has a `name` and `arguments`, not {call!r}")


def _with_files(path: Path, value: Any) -> Any:
    """Replace each line `<<NAME>>` in a text by that file beside the script, indented like the line."""
    if isinstance(value, dict):
        return {key: _with_files(path, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_files(path, item) for item in value]
    if isinstance(value, str):
        return _INCLUDE.sub(lambda match: _included(path.parent / match[2], match[1]), value)
    return value


def _included(path: Path, indent: str) -> str:
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}, which the script includes: {reason_of(error)}") from None
    return "\n".join(f"{indent}{line}" if line else "" for line in lines)
