"""Submits the sample submission. Runs inside a sandbox, with only the standard library."""

import os
import shutil
from pathlib import Path

if __name__ == "__main__":
    sample = Path(os.environ["SAMPLE_SUBMISSION"])
    submission = shutil.copyfile(sample, Path(os.environ["SUBMISSION_DIR"]) / "submission.csv")
    print(f"submitted {sample.name}, {submission.stat().st_size} bytes")
