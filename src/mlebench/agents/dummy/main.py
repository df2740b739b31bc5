"""Submits the sample submission. Runs inside a sandbox, with only the standard library."""

import os
from pathlib import Path

import sample

if __name__ == "__main__":
    found = sample.find(Path(os.environ["DATA_DIR"]))
    content = sample.read(found)
    (Path(os.environ["SUBMISSION_DIR"]) / "submission.csv").write_bytes(content)
    print(f"submitted {found.name}, {len(content)} bytes")
