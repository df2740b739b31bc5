"""Is a submission's format right? Knows a public folder and nothing else: no answers, no data directory."""

from mlebench.validate.format_check import CheckFailedError, over_public, stand_in, validate_format

__all__ = ["CheckFailedError", "over_public", "stand_in", "validate_format"]
