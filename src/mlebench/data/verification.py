"""Prepared files and archives against the published checksums."""

import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.data.manifest import Files, files_in, write_manifest
from mlebench.data.state import read_manifest, require_prepared
from mlebench.errors import PrerequisiteError
from mlebench.paths import MANIFEST, PRIVATE, PUBLIC
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


def check_prepared(competition: Competition, files: Files) -> None:
    """Compare what is staged with the published figures; the error lists every file that differs."""
    differences = _unpublished(competition, competition.paths.staging, files)
    if differences:
        lines = "\n".join(f"  {name} {fault}" for name, fault in differences)
        raise PrerequisiteError(
            f"{competition.id}: {len(differences)} prepared files differ from the published ones "
            f"(--skip-verification keeps them):\n{lines}"
        )


def prepared_checksums(prepared: Path, files: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """md5 of the tables and records directly in public/ and private/, by the published selection."""
    sums: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    for path, facts in files.items():
        side, _, name = path.partition("/")
        if side in SIDES and "/" not in name and name.endswith(SUFFIXES):
            sums[side][name] = facts.get("md5") or _md5(prepared / path)
    return sums


def check_sample_score(competition: Competition) -> None:
    """The sample submission must score on real data what it always has; another data set is noticed at once."""
    from mlebench.kit.tables import read_frame

    expected = competition.sample_score
    where = competition.paths
    answers, sample = (
        where.staging / path.relative_to(where.prepared)
        for path in (competition.answers, competition.sample_submission)
    )
    if expected is None or {answers.suffix, sample.suffix} != {".csv"}:
        return
    score = competition.grader.score(read_frame(sample), read_frame(answers))
    if not math.isclose(score, expected, abs_tol=1e-5) and not (math.isnan(score) and math.isnan(expected)):
        raise PrerequisiteError(
            f"{competition.id}: the sample submission scores {score}, not {expected} as on the published data. "
            f"This is another data set; --skip-verification keeps it."
        )


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


class Difference(NamedTuple):
    """A file that is not what it should be."""

    file: str
    fault: str


def verify(competition: Competition, *, deep: bool = False, adopt: bool = False) -> list[Difference]:
    """Compare prepared files with the manifest and the published checksums; `deep` reads every byte.

    Data of another program has no manifest; `adopt` gives it one, unless something differs.
    """
    require_prepared(competition)
    prepared = competition.paths.prepared
    found, manifest = files_in(prepared), read_manifest(competition)
    differences = []
    if manifest is None and not adopt:
        differences.append(Difference(MANIFEST, "is missing: the data was prepared elsewhere; --adopt accepts it"))
    recorded = manifest["files"] if manifest else {}
    differences += [Difference(name, "is missing") for name in sorted(recorded.keys() - found.keys())]
    differences += [
        Difference(name, "was not there before") for name in sorted(found.keys() - recorded.keys()) if manifest
    ]
    for name in sorted(recorded.keys() & found.keys()):
        if fault := _difference(prepared / name, recorded[name], found[name], deep):
            differences.append(Difference(name, fault))
    if manifest is None or manifest["source"]["kind"] != "twin":
        differences += _unpublished(competition, prepared, found)
    if adopt and manifest is None and not differences:
        hashed = {name: facts | {"md5": _md5(prepared / name)} if deep else facts for name, facts in found.items()}
        write_manifest(competition, prepared, {"kind": "unknown"}, hashed)
    return differences


def _difference(path: Path, recorded: dict[str, Any], found: dict[str, Any], deep: bool) -> str | None:
    if found["size"] != recorded["size"]:
        return f"has {found['size']} bytes, not {recorded['size']}"
    if "mtime_ns" in recorded and "md5" not in recorded and found["mtime_ns"] != recorded["mtime_ns"]:
        return "was changed since it was placed"
    if "md5" in recorded and _md5(path) != recorded["md5"]:
        return "has another md5 than when it was written"
    if deep and "crc32" in recorded and _crc32(path) != recorded["crc32"]:
        return "has another checksum than in the archive"
    return None


def _unpublished(competition: Competition, prepared: Path, found: Files) -> list[Difference]:
    actual = prepared_checksums(prepared, found)
    return [
        Difference(f"{side}/{name}", f"has md5 {actual[side].get(name, '(no such file)')}, published is {md5}")
        for side in SIDES
        for name, md5 in sorted(published(competition).get(side, {}).items())
        if actual[side].get(name) != md5
    ]


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value
