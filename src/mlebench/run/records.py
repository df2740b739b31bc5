"""Run groups and runs, by the name that earlier versions gave this module."""

from mlebench.records.run_groups import Group, Run, find_group

__all__ = ["Group", "Run", "find_group"]
