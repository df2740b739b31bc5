"""Is a submission's format right? Uses only a public folder: no answers, no data directory."""

from mlebench.validate.check import CheckFailedError, over_public, stand_in, validate_format

__all__ = ["CheckFailedError", "over_public", "stand_in", "validate_format"]
