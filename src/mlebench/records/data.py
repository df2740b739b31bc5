"""The head of a manifest: what was prepared, from what and by which versions."""

from typing import Any

import msgspec

from mlebench.records.base import Count, Name, Number, Record, Seconds, Text, Time


class GoldCost(msgspec.Struct, frozen=True):
    """What it takes to grade the gold submission."""

    seconds: Seconds  # of CPU time
    memory: Count  # bytes, at its peak
    size: Count  # bytes of the gold submission


class DataSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where raw data came from."""

    kind: Text  # twin, local, kaggle or unknown
    seed: Count | None = None  # of a twin
    size: Count | Number | None = None  # of a twin, a factor; of an archive, bytes
    url: Text | None = None
    fetched_at: Time | None = None
    md5: Text | None = None


class Manifest(Record, frozen=True, kw_only=True):
    """The head: everything but the list of files. Defaults are of facts that older manifests lack."""

    schema: int = 2
    competition: Name
    profile: Text
    source: DataSource
    prepared_at: Time
    versions: dict[str, Text]
    files: Count
    bytes: Count
    competition_version: int | None = None
    description: Text = "unknown"  # `ours`, or Kaggle's `original`
    code: Text | None = None  # the competition's code that made it, as `verification.code_hash` has it
    identity: Text | None = None  # what `manifest.ContentIdentity` makes of the files
    gold: GoldCost | None = None  # adopted data have none
    writable: bool = False  # older versions made files read-only, see `modes`

    @classmethod
    def upgrade(cls, data: dict[str, Any]) -> dict[str, Any]:
        """The first schema had the list of files in the same record."""
        match data:
            case {"source": {"kind": str()}, "files": dict(files)}:
                versions = data.get("versions", {})
                sizes: list[Any] = [facts.get("size") if isinstance(facts, dict) else None for facts in files.values()]
                is_whole = all(isinstance(size, int) for size in sizes)
                counted = {"files": len(files), "bytes": sum(sizes) if is_whole else None}
                return data | counted | {"versions": versions, "mlebench": versions.get("mlebench", "unknown")}
        return data
