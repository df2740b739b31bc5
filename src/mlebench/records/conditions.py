"""The conditions under which a group's runs take place: what has to agree before results are pooled or compared.

This is the only list of them. Records, standings, pages and `--like` all go by CONDITIONS, so a new condition is one
entry there; a record that was written earlier has the default of its field.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mlebench.core.untrusted import plain
from mlebench.records.group import FOLDERS, GroupRecord, Limits

NOT_STATED = "not stated"
AND = " and "


@dataclass(frozen=True)
class Condition:
    name: str  # in JSON
    title: str  # above a column
    value: Callable[[GroupRecord], Any]  # for programs
    text: Callable[[list[Any]], str]  # for readers, with the unit; several values if runs are pooled over them
    # agent: says which agent it is. subject: comparisons are about it. detail: only for programs.
    kind: Literal["agent", "subject", "condition", "detail"] = "condition"
    usual: tuple[Any, ...] = ()  # values that go without saying
    shown: Callable[[GroupRecord], Any] | None = None  # what the text is made of, if not of the value
    identity: Callable[[GroupRecord], Any] | None = None  # what is compared, if not the text
    request: str | None = None  # its key in `requested`, if the machine decides where nothing is requested
    in_run: str | None = None  # the field of a run's conditions that repeats it
    of_model: bool = False  # whether only runs with a model have that field

    def text_of(self, records: Iterable[GroupRecord]) -> str:
        """What readers see, each value once; a stranger's record may hold anything."""
        values = [(self.shown or self.value)(record) for record in records]
        values = [value for number, value in enumerate(values) if value not in values[:number]]
        try:
            text = self.text(values)
        except (TypeError, ValueError):
            text = AND.join(map(str, values))
        return plain(text)

    def key_of(self, record: GroupRecord) -> str:
        """Equal for groups that agree in this condition."""
        return str(self.identity(record)) if self.identity else self.text_of([record])

    def request_of(self, record: GroupRecord) -> str | None:
        """Equal for groups that requested the same; None if the machine decided.

        Earlier versions did not record requests: what their runs got counts as requested.
        """
        if self.request and record.requested and getattr(record.requested, self.request) is None:
            return None
        return self.key_of(record)


class Conditions:
    """The conditions of the runs of some groups; report files state none."""

    def __init__(self, records: Sequence[GroupRecord] = ()):
        self.are_stated = bool(records)
        self.values: dict[str, Any] = {}  # null where runs are pooled over several
        self.pooled: dict[str, list[Any]] = {}
        self.texts: dict[str, str] = {}
        self.keys: dict[str, tuple[str, ...]] = {}
        self.requests: dict[str, set[str | None]] = {}
        for condition in CONDITIONS:
            by_key: dict[str, GroupRecord] = {}
            for record in records:
                by_key.setdefault(condition.key_of(record), record)
            values = [condition.value(record) for record in by_key.values()]
            if len(values) > 1:
                self.pooled[condition.name] = values
            self.values[condition.name] = values[0] if len(values) == 1 else None
            self.texts[condition.name] = condition.text_of(by_key.values()) if records else NOT_STATED
            self.keys[condition.name] = tuple(sorted(by_key))
            self.requests[condition.name] = {condition.request_of(record) for record in records}

    def is_usual(self, condition: Condition) -> bool:
        return condition.name not in self.pooled and self.values[condition.name] in condition.usual

    @property
    def pooled_text(self) -> str:
        """What the runs are pooled over; empty if they agree in everything."""
        return ", ".join(self.texts[name] for name in self.pooled)


@dataclass(frozen=True)
class EntryLabel:
    """What distinguishes an entry from others of the same agent."""

    texts: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()  # the names of those that it states


def labels(namesakes: Sequence[Conditions]) -> list[EntryLabel]:
    """A label for each entry of one agent. What is usual is left out, unless two labels would then be equal."""
    stated = [entry for entry in namesakes if entry.are_stated]
    in_full = [_distinguishing(entry, stated) for entry in namesakes]
    in_short = [_without_usual(entry, parts) for entry, parts in zip(namesakes, in_full, strict=True)]
    texts = [_label(entry, parts).texts for entry, parts in zip(namesakes, in_short, strict=True)]
    chosen = [
        short if texts.count(text) == 1 else full for short, full, text in zip(in_short, in_full, texts, strict=True)
    ]
    without = EntryLabel((f"conditions {NOT_STATED}",) if stated else ())
    return [
        _label(entry, parts) if entry.are_stated else without for entry, parts in zip(namesakes, chosen, strict=True)
    ]


def _label(entry: Conditions, parts: Sequence[Condition]) -> EntryLabel:
    return EntryLabel(tuple(entry.texts[part.name] for part in parts), tuple(part.name for part in parts))


def _distinguishing(entry: Conditions, namesakes: Sequence[Conditions]) -> list[Condition]:
    """Where an entry differs from others in what was requested, not in what machines decided."""
    return [
        condition
        for condition in CONDITIONS
        if condition.kind != "detail"
        and any(other.requests[condition.name] != entry.requests[condition.name] for other in namesakes)
        and any(other.keys[condition.name] != entry.keys[condition.name] for other in namesakes)
    ]


def _without_usual(entry: Conditions, parts: list[Condition]) -> list[Condition]:
    """What is not usual; where everything is, the first part stands for all."""
    return [part for part in parts if not entry.is_usual(part)] or parts[:1]


def requests_of(record: GroupRecord) -> tuple[str | None, ...]:
    """Groups that requested the same conditions are pooled."""
    return tuple(condition.request_of(record) for condition in CONDITIONS)


def differing(entries: Iterable[Conditions]) -> list[Condition]:
    """In which conditions entries differ, as far as they state any."""
    stated = [entry for entry in entries if entry.are_stated]
    return [
        condition
        for condition in CONDITIONS
        if condition.kind != "detail" and len({entry.keys[condition.name] for entry in stated}) > 1
    ]


def unlike(one: Conditions, other: Conditions) -> dict[str, tuple[str, str]]:
    """What makes a comparison of two entries unfair: the texts of both, by title."""
    if one.are_stated != other.are_stated:
        return {"conditions": (_whether_stated(one), _whether_stated(other))}
    unfair = [condition for condition in differing([one, other]) if condition.kind == "condition"]
    return {condition.title: (one.texts[condition.name], other.texts[condition.name]) for condition in unfair}


def unlike_text(unfair: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{text} against {other_text}" for text, other_text in unfair.values())


def _whether_stated(conditions: Conditions) -> str:
    return "conditions stated" if conditions.are_stated else f"conditions {NOT_STATED}"


def alike_text(entries: Sequence[Conditions]) -> str:
    """What all entries agree in, in one line; what goes without saying is left out."""
    stated = [entry for entry in entries if entry.are_stated]
    apart = {condition.name for condition in differing(stated)}
    return ", ".join(
        stated[0].texts[condition.name]
        for condition in CONDITIONS
        if stated
        and condition.kind in ("subject", "condition")
        and condition.name not in apart
        and not stated[0].is_usual(condition)
    )


def run_conditions(record: GroupRecord) -> dict[str, Any]:
    """The requested conditions that the record of each run repeats."""
    repeated = [condition for condition in CONDITIONS if condition.in_run and (record.model or not condition.of_model)]
    return {str(condition.in_run): condition.value(record) for condition in repeated}


def time_limit(hours: float | None) -> str:
    if hours is None:
        return "unknown"
    if hours < 1 / 60:
        return f"{hours * 3600:.3g} s"
    return f"{hours:.3g} h" if hours >= 1 else f"{hours * 60:.3g} min"


def _joined(text: Callable[[Any], str], nothing: str = NOT_STATED) -> Callable[[list[Any]], str]:
    """The texts of all values, joined."""
    return lambda values: AND.join(nothing if value is None else text(value) for value in values)


def _amount(title: str, unit: str, number: Callable[[Any], str] = "{:g}".format) -> Callable[[list[Any]], str]:
    """Numbers with one unit for all of them."""
    return lambda values: f"{title} {NOT_STATED}" if values == [None] else f"{_joined(number)(values)} {unit}"


def _count(noun: str) -> Callable[[list[Any]], str]:
    """`2 and 1 CPUs`."""
    few = {(0,): f"no {noun}", (1,): f"1 {noun}"}
    return lambda values: few.get(tuple(values)) or _amount(f"{noun}s", f"{noun}s")(values)


def _gigabytes(size: float) -> str:
    """In two digits: machines of one kind differ in the third."""
    return f"{float(f'{size / 1e9:.2g}'):g}"


def _gibibytes(size: float) -> str:
    return f"{size / (1 << 30):.3g}"


def _limit(name: str) -> Callable[[GroupRecord], Any]:
    return lambda record: getattr(record.limits, name, None)


def _of_model(name: str) -> Callable[[GroupRecord], Any]:
    return lambda record: getattr(record.model, name, None)


def _opened(name: str) -> Callable[[GroupRecord], list[Any]]:
    """Tools and fields that were opened by name."""
    return lambda record: _of_model(name)(record) or []


def _names(kind: str) -> Callable[[list[Any]], str]:
    return _joined(lambda names: f"{kind} {', '.join(map(str, names))}" if names else f"no {kind}")


def _model(record: GroupRecord) -> str | None:
    return ", ".join(record.model.models if record.model else ()) or record.agent.model


def shared_folder_text(record: GroupRecord, name: str) -> str | None:
    """The name of the folder that agents may read as `knowledge`, say, and the beginning of its hash."""
    folder, sha256 = getattr(record, name), getattr(record, f"{name}_sha256")
    return None if folder is None else plain(Path(folder).name + (f" ({sha256[:12]})" if sha256 else ""))


def _shared_folder(name: str) -> tuple[Condition, Condition]:
    """A folder that agents may read, and the hash of its files, which tells a changed folder from an equal one."""
    return (
        Condition(
            name,
            name,
            lambda record: getattr(record, name),
            _joined(f"{name} {{}}".format, f"no {name}"),
            usual=(None,),
            shown=lambda record: shared_folder_text(record, name),
            identity=lambda record: getattr(record, f"{name}_sha256") or getattr(record, name),
            in_run=name,
        ),
        Condition(
            f"{name}_sha256",
            "",
            lambda record: getattr(record, f"{name}_sha256"),
            _joined(str),
            "detail",
            in_run=f"{name}_sha256",
        ),
    )


def options_text(options: Mapping[str, str]) -> str:
    """What `--agent-option` set; empty if nothing."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


CONDITIONS: tuple[Condition, ...] = (
    Condition("agent", "agent", lambda record: record.agent.name, _joined(str), "agent"),
    Condition(
        "identity",
        "files of the agent",
        lambda record: record.agent.identity,
        _joined(lambda sha256: f"agent files {str(sha256)[:12]}", f"agent files {NOT_STATED}"),
        "agent",
        identity=lambda record: record.agent.identity,
    ),
    Condition(
        "agent_options",
        "options of the agent",
        lambda record: dict(sorted(record.agent_options.items())),
        _joined(lambda options: options_text(options) or "default options"),
        "subject",
        usual=({},),
    ),
    Condition("model", "model", _model, _joined(str, "no model"), "subject", usual=(None,)),
    Condition(
        "time_limit",
        "time limit",
        _limit("seconds"),
        _joined(lambda seconds: time_limit(seconds / 3600), f"time limit {NOT_STATED}"),
    ),
    Condition("cpus", "CPUs", _limit("cpus"), _count("CPU"), request="cpus"),
    Condition("memory", "memory", _limit("memory"), _amount("memory", "GB RAM", _gigabytes), request="memory"),
    Condition(
        "shm",
        "shared memory",
        _limit("shm"),
        _amount("shared memory", "GiB of shared memory", _gibibytes),
        usual=(Limits.shm,),
    ),
    Condition("gpus", "GPUs", lambda record: record.gpus_per_run, _count("GPU")),
    Condition(
        "runs_per_gpu",
        "runs per GPU",
        lambda record: record.runs_per_gpu,
        _joined(lambda number: f"{number:g} run{'s' * (number != 1)} per GPU"),
        usual=(1,),
        in_run="runs_per_gpu",
    ),
    Condition(
        "network",
        "network",
        lambda record: record.network,
        _joined(lambda name: "no network" if name == "none" else f"network {name}"),
    ),
    Condition(
        "description",
        "description",
        lambda record: "obfuscated" if record.obfuscate else "named",
        _joined("description {}".format),
        in_run="description",
    ),
    *(condition for name in FOLDERS for condition in _shared_folder(name)),
    Condition("budget", "budget", _of_model("budget"), _joined("budget {}".format, "no budget"), usual=(None,)),
    Condition("tools", "tools", _opened("tools"), _names("tools"), usual=([],), in_run="provider_tools", of_model=True),
    Condition(
        "fields", "fields", _opened("fields"), _names("fields"), usual=([],), in_run="request_fields", of_model=True
    ),
    Condition(
        "sandbox",
        "sandbox",
        lambda record: record.sandbox,
        lambda names: f"sandbox {AND.join(names)}",
        request="sandbox",
    ),
    Condition(
        "image", "image", lambda record: record.image, _joined("image {}".format, "default image"), usual=(None,)
    ),
    Condition("profile", "profile", lambda record: record.profile, _joined("profile {}".format), in_run="profile"),
)
