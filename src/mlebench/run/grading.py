"""Grades a run's submission once the run has ended, on the host, where the answers are."""

from pathlib import Path

import msgspec

from mlebench.grade import GradingLimits, grade_csv
from mlebench.records.report import Report
from mlebench.records.run_groups import UNKNOWN, Group, Run
from mlebench.registry import Competition
from mlebench.scoring import RunInfo


def grade_run(submission: Path, competition: Competition, run: Run, group: Group) -> Report:
    """The report, which gives the submission's final path.

    It is graded in a process of its own: whatever a submission makes a grader do, the runner lives on. A fault of our
    own, such as a full disk, is raised.
    """
    report = grade_csv(submission, competition, run_info(run, group), limits=GradingLimits()).to_record()
    return msgspec.structs.replace(report, submission_path=str(run.paths.submission))


def run_info(run: Run, group: Group) -> RunInfo:
    """What reports say about the run a submission comes from."""
    agent = group.record.agent.name
    return RunInfo(agent=None if agent == UNKNOWN else agent, seed=run.record.seed, run_id=run.record.run_id)
