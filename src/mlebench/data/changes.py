"""What has changed since data was prepared: the competition's code or description, or the files themselves.

`prepare` keeps data that is already prepared, so it warns when it would now make something different, as far as a quick
check can tell; `verify` checks every file.
"""

import hashlib
import os

from mlebench.core import paths
from mlebench.data.faults import disk_errors
from mlebench.data.manifest import UnreadableListError, recorded_files
from mlebench.data.state import command_to_prepare, read_manifest_head
from mlebench.records.data import Manifest
from mlebench.registry import Competition

OURS, ORIGINAL = "ours", "original"  # descriptions
MOST_FILES = 10_000  # up to this many, checking each takes no time


def code_hash(competition: Competition, *, twin: bool, with_ours: bool = False) -> str:
    """A hash of the competition's own code that decides what is prepared; of ours as well, if wanted."""
    others = {f"{profile}.py" for profile in paths.PROFILES if profile != competition.profile}
    left_out = {"grade.py", *others, *(() if twin else (paths.TWIN,))}
    digest = hashlib.sha256()
    folders = [competition.folder]
    if with_ours:
        folders += [paths.module_dir() / name for name in ("engine", "kit", "metrics")]
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.name not in left_out:
                digest.update(f"{path.relative_to(folder)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def changes(competition: Competition) -> list[str]:
    """What would be different if our data were prepared now, each in a few words."""
    where = competition.paths
    with disk_errors(where.root, where.root):
        head = read_manifest_head(competition)
        if head is None:
            return []
        twin = head.source.kind == "twin"
        found = []
        if head.code not in (None, code_hash(competition, twin=twin)):
            found.append("the competition's code has changed since")
        if head.description == OURS and _has_another_description(competition):
            found.append(f"{paths.DESCRIPTION} is not the competition's description")
        if head.files <= MOST_FILES and (count := _other_files(competition)):
            found.append(f"{count} of {head.files} files are missing or have another size")
    return found


def command_to_prepare_again(competition: Competition) -> str:
    """What to type to make the same kind of data again with the current code."""
    head = read_manifest_head(competition)
    return command_to_prepare(competition, "--force", *(_options_used(competition.paths, head) if head else ()))


def _options_used(where: paths.CompetitionPaths, head: Manifest) -> list[str]:
    again = ["--description original"] if head.description == ORIGINAL else []
    if head.source.kind == "local" and not (where.raw.is_dir() or where.archive.is_file()):
        again.append("--from PATH_OF_RAW_DATA")  # it lies elsewhere, and may have moved
    if head.source.kind == "twin":
        usual = {"seed": 0, "size": 1.0}
        again += [
            f"--{name} {value:g}" for name in usual if (value := getattr(head.source, name)) not in (None, usual[name])
        ]
    return again


def _has_another_description(competition: Competition) -> bool:
    try:
        return (competition.public_dir / paths.DESCRIPTION).read_bytes() != competition.description.encode("utf-8")
    except FileNotFoundError:
        return False  # counted among the files


def _other_files(competition: Competition) -> int:
    prepared = competition.paths.prepared
    try:
        return sum(_size(f"{prepared}/{name}") != facts["size"] for name, facts in recorded_files(prepared))
    except UnreadableListError:
        return 0  # `verify` says that it cannot be read


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
