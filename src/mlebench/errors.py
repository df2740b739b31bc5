"""Each exception class names who has to fix the problem. See `mlebench.core.errors`."""

from mlebench.core.errors import (
    ConfigError,
    InvalidSubmissionError,
    MissingPackageError,
    NotPreparedError,
    PrerequisiteError,
    RequestError,
    SandboxError,
    StorageError,
    UnknownCompetitionError,
    UnknownSplitError,
    UnreadableSubmissionError,
)

__all__ = [
    "ConfigError",
    "InvalidSubmissionError",
    "MissingPackageError",
    "NotPreparedError",
    "PrerequisiteError",
    "RequestError",
    "SandboxError",
    "StorageError",
    "UnknownCompetitionError",
    "UnknownSplitError",
    "UnreadableSubmissionError",
]
