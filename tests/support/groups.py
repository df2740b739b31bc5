"""Planned run groups for tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from mlebench.gateway.access import ModelAccess
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.plan import make_plan, write_plan
from mlebench.run.request import Request


def plan_group(competition: Competition, runs_dir: Path, *, model: ModelAccess | None = None, **request: Any) -> Group:
    """A planned group, in plain processes unless another sandbox is requested; `model` needs no key."""
    fields = {"competitions": [competition.id], "data_dir": competition.paths.data_dir, "sandbox": "process", **request}
    plan = make_plan(Request(runs_dir=runs_dir, **fields))
    if model:
        plan = replace(plan, model=model, request=replace(plan.request, network="model"))
    return write_plan(plan)
