"""Competitions outside the package, for tests that need their own graders."""

import os
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.registry import Competition

CONFIG = """
id: {id}
name: {id}
grader: {{name: accuracy}}
higher_is_better: true
dataset: {{answers: private/test.csv, sample_submission: public/sample_submission.csv}}
"""


def add_competition(folder: Path, id: str, grade: str, like: Competition, data_dir: Path) -> None:
    """A competition folder with this grader, and data prepared for it."""
    own = folder / id
    own.mkdir(parents=True)
    (own / "config.yaml").write_text(CONFIG.format(id=id))
    (own / "description.md").write_text("A task.\n")
    (own / "leaderboard.csv").write_text("score\n1.0\n0.5\n")
    (own / "grade.py").write_text(textwrap.dedent(grade))
    shutil.copytree(like.paths.prepared, data_dir / id / "prepared")


def drop_privileges() -> Callable[[], None] | None:
    """For a child process: makes root give up its right to read everything. Other users need nothing."""
    if os.geteuid() != 0:
        return None

    def drop() -> None:
        import ctypes

        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if ctypes.CDLL(None, use_errno=True).prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                pytest.exit("cannot give up capabilities")

    return drop
