"""The sample submission as an agent finds it: a CSV in public/, or inside an archive there."""

import io
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from mlebench.core.errors import NotPreparedError
from mlebench.engine.frames import read_frame, values_of
from mlebench.kit.raw import open_raw


class HasPublicSample(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def sample_submission(self) -> Path: ...
    @property
    def public_sample(self) -> Path | None: ...


class HasSubmissionFacts(HasPublicSample, Protocol):
    @property
    def submission(self) -> dict[str, Any]: ...


def public_sample_bytes(competition: HasPublicSample) -> bytes:
    path = competition.public_sample or competition.sample_submission
    if not path.is_file():
        raise NotPreparedError(f"{competition.id} is not prepared: there is no {path}")
    if path.suffix not in (".zip", ".7z"):
        return path.read_bytes()
    with open_raw(path.parent) as folder:
        archive = folder.archive(path.name)
        (sample,) = archive.files("**/*.csv") or archive.files("**")  # one CSV file is named `.txt`
        return sample.read()


def public_sample(competition: HasPublicSample) -> pd.DataFrame:
    return read_frame(io.BytesIO(public_sample_bytes(competition)))


def sample_stand_in(competition: HasSubmissionFacts) -> pd.DataFrame:
    """The sample submission in place of the answers."""
    sample = public_sample(competition)
    return with_both_classes(sample, competition.submission.get("targets") or sample.columns[1:])


def with_both_classes(table: pd.DataFrame, targets: Any) -> pd.DataFrame:
    """Replace a target that is the same number in every row with zeros and ones: many metrics need both classes.

    Several such targets take turns, so that each row has a one in one of them, as true classes do.
    """
    alike = [name for name in targets if _is_one_number(values_of(table[name]))]
    turns = np.arange(len(table)) % max(2, len(alike))
    return table.assign(**{name: (turns == index).astype(table[name].dtype) for index, name in enumerate(alike)})


def _is_one_number(values: np.ndarray) -> bool:
    return values.dtype.kind in "biuf" and len(values) > 0 and bool((values == values[0]).all())
