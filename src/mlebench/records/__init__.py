"""The records of groups, runs, reports and data: their types, and reading and writing them.

`read(path, Kind)` and `write(path, record)` read and write a record on disk; only planning writes the records of new
runs itself, thousands at a time, before anybody can see their group. What a file says is checked against
the types here once, so that nobody who has a record need doubt it. docs/reference/records.md describes every field.
"""

from mlebench.records.base import DamagedRecordError, Record, now, parse, read, write

__all__ = ["DamagedRecordError", "Record", "now", "parse", "read", "write"]
