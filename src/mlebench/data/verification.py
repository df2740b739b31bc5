"""Prepared files and archives against the published checksums."""

import logging
import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.data.manifest import Files, files_in, rewrite_manifest, write_manifest
from mlebench.data.state import read_manifest, require_prepared
from mlebench.errors import PrerequisiteError
from mlebench.paths import MANIFEST, PRIVATE, PUBLIC
from mlebench.registry import Competition

SIDES = (PUBLIC, PRIVATE)
PARQUET = ".parquet"
SUFFIXES = (".csv", ".json", ".jsonl", PARQUET, ".bson")
logger = logging.getLogger(__name__)


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
    from mlebench.kit.frames import read_frame

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

    staging = competition.paths.staging
    sums: dict[str, Any] = dict(prepared_checksums(staging, files))
    contents = {
        side: {name: _content_hash(staging / side / name) for name in sums[side] if name.endswith(PARQUET)}
        for side in SIDES
    }
    if any(contents.values()):
        sums["content"] = contents
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


def _content_hash(path: Path) -> str:
    from mlebench.kit.parquet import content_hash

    return content_hash(path)


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
    differences: list[Difference] = []
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
    if not differences and ((adopt and manifest is None) or (deep and manifest)):
        _record(competition, manifest, found, deep)
    return differences


def _record(competition: Competition, manifest: dict[str, Any] | None, found: Files, deep: bool) -> None:
    """Write down what is known of files now; `deep`: with the md5 of those that had no checksum."""
    files = manifest["files"] if manifest else found
    unknown = [name for name, facts in files.items() if deep and not facts.keys() & {"md5", "crc32"}]
    times = {name: found[name]["mtime_ns"] for name in files} if deep else {}
    touched = [name for name, time in times.items() if files[name].get("mtime_ns", time) != time]
    if manifest and not unknown and not touched:
        return
    hashed = files | {name: files[name] | {"md5": _md5(competition.paths.prepared / name)} for name in unknown}
    hashed |= {name: hashed[name] | {"mtime_ns": times[name]} for name in touched}
    if manifest:
        rewrite_manifest(competition, manifest | {"files": hashed})
    else:
        write_manifest(competition, competition.paths.prepared, {"kind": "unknown"}, hashed)


def _difference(path: Path, recorded: dict[str, Any], found: dict[str, Any], deep: bool) -> str | None:
    if found["size"] != recorded["size"]:
        return f"has {found['size']} bytes, not {recorded['size']}"
    if "md5" in recorded and (deep or "mtime_ns" not in recorded):
        return None if _md5(path) == recorded["md5"] else "has another md5 than is on record"
    if "mtime_ns" in recorded and found["mtime_ns"] != recorded["mtime_ns"]:
        return "was changed since it was placed"
    if deep and "crc32" in recorded and _crc32(path) != recorded["crc32"]:
        return "has another checksum than in the archive"
    return None


def _unpublished(competition: Competition, prepared: Path, found: Files) -> list[Difference]:
    actual, expected = prepared_checksums(prepared, found), published(competition)
    contents = expected.get("content", {})
    differences = []
    for side in SIDES:
        for name, md5 in sorted(expected.get(side, {}).items()):
            there = actual[side].get(name)
            if there is not None and name.endswith(PARQUET):
                fault = _parquet_fault(prepared / side / name, there == md5, contents.get(side, {}).get(name))
            else:
                fault = None if there == md5 else f"has md5 {there or '(no such file)'}, published is {md5}"
            if fault:
                differences.append(Difference(f"{side}/{name}", fault))
    return differences


def _parquet_fault(path: Path, same_bytes: bool, expected: str | None) -> str | None:
    """Other bytes may hold the same: they depend on the library that wrote them."""
    if same_bytes:
        return None
    if expected is None:
        logger.warning("%s is not compared: its bytes depend on a library, and no hash of its content is known", path)
        return None
    try:
        actual = _content_hash(path)
    except (OSError, ValueError) as error:  # also how arrow reports damage
        return f"cannot be read ({error})"
    return None if actual == expected else f"has content {actual}, published is {expected}"


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value
