"""Finds and reads the sample submission of a competition, even inside an archive.

Standard library only: this file travels into the sandbox with the agent.
"""

import re
import zipfile
from pathlib import Path

import seven_zip

ARCHIVES = (".zip", ".7z")
# Two competitions call theirs something else. In the second the test file has the form of a submission.
OTHER_NAMES = ("randomPredictions.csv", "test_v2.txt.zip")


def find(data: Path) -> Path:
    """The file that holds the sample submission; a plain file is preferred to an archive."""
    files = sorted(path for path in data.iterdir() if path.is_file())
    named = [path for path in files if "samplesubmission" in re.sub("[^a-z]", "", path.name.lower())]
    found = sorted(named, key=lambda path: path.suffix in ARCHIVES) or [p for p in files if p.name in OTHER_NAMES]
    if not found:
        raise SystemExit(f"no sample submission among {', '.join(path.name for path in files)}")
    return found[0]


def read(path: Path) -> bytes:
    """Its content; an archive holds one file and nothing else."""
    if path.suffix == ".7z":
        return seven_zip.read_only_member(path)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            (member,) = (name for name in archive.namelist() if not name.endswith("/"))
            return archive.read(member)
    return path.read_bytes()
