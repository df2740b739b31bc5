"""Prepared files and archives against the published checksums."""

from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.paths import PRIVATE, PUBLIC
from mlebench.registry import Competition

SIDES = (PUBLIC, PRIVATE)
SUFFIXES = (".csv", ".json", ".jsonl", ".parquet", ".bson")


def check_archive(competition: Competition, archive: Path) -> None:
    expected = published(competition).get("zip")
    if expected is None:
        return
    actual = _md5(archive)
    if actual != expected:
        raise PrerequisiteError(
            f"{archive} is not the published archive: its md5 is {actual}, not {expected}. "
            f"Get it again, or accept it with --skip-verification."
        )


def check_prepared(competition: Competition, files: dict[str, dict[str, Any]]) -> None:
    """Compare what was prepared with the published figures; the error lists every file that differs."""
    expected = published(competition)
    actual = prepared_checksums(competition.paths.staging, files)
    lines = [
        f"  {side}/{name}: md5 {actual[side].get(name, 'missing')}, published {md5}"
        for side in SIDES
        for name, md5 in sorted(expected.get(side, {}).items())
        if actual[side].get(name) != md5
    ]
    if lines:
        raise PrerequisiteError(
            f"{competition.id}: {len(lines)} prepared files differ from the published ones "
            f"(--skip-verification keeps them):\n" + "\n".join(lines)
        )


def prepared_checksums(prepared: Path, files: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """md5 of the tables and records directly in public/ and private/, by the published selection."""
    sums: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    for path, facts in files.items():
        side, _, name = path.partition("/")
        if side in SIDES and "/" not in name and name.endswith(SUFFIXES):
            sums[side][name] = facts.get("md5") or _md5(prepared / path)
    return sums


def overwrite(competition: Competition, raw: Path, files: dict[str, dict[str, Any]]) -> None:
    """Write the competition's checksums.yaml anew, from what was just prepared."""
    import yaml

    sums: dict[str, Any] = dict(prepared_checksums(competition.paths.staging, files))
    if raw.is_file():
        sums["zip"] = _md5(raw)
    elif "zip" in (before := published(competition)):
        sums["zip"] = before["zip"]
    competition.checksums.write_text(yaml.safe_dump(sums, default_flow_style=False), encoding="utf-8")


def published(competition: Competition) -> dict[str, Any]:
    import yaml

    if not competition.checksums.is_file():
        return {}
    return yaml.safe_load(competition.checksums.read_text(encoding="utf-8")) or {}


def _md5(path: Path) -> str:
    from mlebench.kit.files import md5_of

    return md5_of(path)
