"""Each exception class names who has to fix the problem. See `mlebench.core.errors`."""

from mlebench.core.errors import (
    CompetitionError,
    ConfigError,
    InvalidSubmissionError,
    MissingPackageError,
    NotPreparedError,
    PrerequisiteError,
    RawDataError,
    RequestError,
    SandboxError,
    StorageError,
    UnknownCompetitionError,
    UnknownSplitError,
    UnreadableSubmissionError,
)

__all__ = [
    "CompetitionError",
    "ConfigError",
    "InvalidSubmissionError",
    "MissingPackageError",
    "NotPreparedError",
    "PrerequisiteError",
    "RawDataError",
    "RequestError",
    "SandboxError",
    "StorageError",
    "UnknownCompetitionError",
    "UnknownSplitError",
    "UnreadableSubmissionError",
]
