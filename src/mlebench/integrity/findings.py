"""What a tool finds, and the record that it leaves. Standings read that too, so it is defined below them."""

from mlebench.run.findings import BY_JUDGE, CONDITION, JUDGE, KINDS, NOTE, VIOLATION, Evidence, Finding, Findings

__all__ = ["BY_JUDGE", "CONDITION", "JUDGE", "KINDS", "NOTE", "VIOLATION", "Evidence", "Finding", "Findings"]
