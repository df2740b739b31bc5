"""Records for tests, made and written as the product makes and writes its own."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mlebench.records import Record, write
from mlebench.records.base import from_dict
from mlebench.records.group import ModelFacts
from mlebench.records.report import Report
from mlebench.records.run_groups import Group, Run
from mlebench.records.usage import ModelUsage

Kind = TypeVar("Kind", bound=Record)
TIME = "2026-01-01T00:00:00.000+00:00"


def make_record(kind: type[Kind], **values: Any) -> Kind:
    """A record with these values, given as in JSON."""
    return from_dict(msgspec.to_builtins(values), kind, "a test's record")


def write_record(path: Path, kind: type[Kind], **values: Any) -> Kind:
    record = make_record(kind, **values)
    write(path, record)
    return record


def report_of(run: Run) -> Report:
    """The report of a run that has one."""
    assert run.record.report is not None
    return run.record.report


def usage_of(run: Run) -> ModelUsage:
    """The use of a model of a run that had one."""
    assert run.record.model is not None
    return run.record.model


def model_of(group: Group) -> ModelFacts:
    """What a group's record says about its model."""
    assert group.record.model is not None
    return group.record.model
