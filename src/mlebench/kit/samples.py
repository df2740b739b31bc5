"""The sample submission as an agent finds it: a CSV in public/, or inside an archive there."""

import io
from pathlib import Path
from typing import Protocol

import pandas as pd

from mlebench.errors import NotPreparedError
from mlebench.kit.files import open_raw
from mlebench.kit.frames import read_frame


class HasPublicSample(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def sample_submission(self) -> Path: ...
    @property
    def public_sample(self) -> Path | None: ...


def public_sample_bytes(competition: HasPublicSample) -> bytes:
    path = competition.public_sample or competition.sample_submission
    if not path.is_file():
        raise NotPreparedError(f"{competition.id} has no sample submission at {path}: prepare the competition first")
    if path.suffix not in (".zip", ".7z"):
        return path.read_bytes()
    with open_raw(path.parent) as folder:
        archive = folder.archive(path.name)
        (sample,) = archive.files("**/*.csv") or archive.files("**")  # one is a CSV file by the name of `.txt`
        return sample.read()


def public_sample(competition: HasPublicSample) -> pd.DataFrame:
    return read_frame(io.BytesIO(public_sample_bytes(competition)))
