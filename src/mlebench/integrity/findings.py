"""What a tool finds, and the record that it leaves. Standings read it too, so it is defined in a lower layer."""

from mlebench.run.findings import BY_JUDGE, CONDITION, JUDGE, KINDS, NOTE, VIOLATION, Evidence, Finding, Findings

__all__ = ["BY_JUDGE", "CONDITION", "JUDGE", "KINDS", "NOTE", "VIOLATION", "Evidence", "Finding", "Findings"]
