"""The oracle submits the gold submission. It reads the answers, so it runs on the host and never in a sandbox."""

import shutil
from pathlib import Path

from mlebench.core.errors import NotPreparedError
from mlebench.registry import Competition


def submit(competition: Competition, submission: Path) -> None:
    """Write a submission for a prepared competition."""
    if not competition.gold_submission.is_file():
        raise NotPreparedError(f"{competition.id} has no answers here: run `{competition.prepare_command}`")
    submission.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(competition.gold_submission, submission)
