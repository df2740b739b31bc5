"""The dummy agent submits the sample submission: a floor for scores and a check of the whole path."""

from pathlib import Path

from mlebench.kit.samples import public_sample_bytes
from mlebench.registry import Competition


def run(competition: Competition, submission: Path) -> None:
    """Write a submission for a prepared competition."""
    submission.parent.mkdir(parents=True, exist_ok=True)
    submission.write_bytes(public_sample_bytes(competition))
