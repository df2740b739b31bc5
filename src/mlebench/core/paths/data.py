"""Where the data of competitions is, and the names of what is in a competition's own folder."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PROFILES = ("v1", "v2")
PREPARED, PUBLIC, PRIVATE = "prepared", "public", "private"
MANIFEST, MANIFEST_FILES = "manifest.json", "manifest.files.jsonl"
GROUPS = "groups.csv"  # in private/, under v2: which test rows belong together
CONFIG, DESCRIPTION = "config.yaml", "description.md"  # in a competition folder, like the next five
LEADERBOARD, CHECKSUMS = "leaderboard.csv", "checksums.yaml"
PREPARE, GRADE, TWIN = "prepare.py", "grade.py", "twin.py"
KERNELS = "kernels.txt"  # also there: the names of published notebooks
SCRATCH = "mlebench-"  # the prefix of scratch folders' names


@dataclass(frozen=True)
class CompetitionPaths:
    """Where one competition's files are in a data directory."""

    data_dir: Path
    id: str
    profile: str = "v1"
    folder: Path | None = None  # where it is, if not in <data-dir>/<id>

    @cached_property
    def root(self) -> Path:
        return self.folder or self.data_dir / self.id

    @cached_property
    def archive(self) -> Path:
        return self.root / f"{self.id}.zip"

    @cached_property
    def archive_record(self) -> Path:
        return self.root / f"{self.id}.zip.json"

    @cached_property
    def archive_elsewhere_record(self) -> Path:
        return self.root / "from.json"

    @cached_property
    def archive_part(self) -> Path:
        return self.root / f"{self.id}.zip.part"

    @cached_property
    def archive_part_record(self) -> Path:
        return self.root / f"{self.id}.zip.part.json"

    @cached_property
    def raw(self) -> Path:
        return self.root / "raw"

    @cached_property
    def raw_staging(self) -> Path:
        return self.root / "raw.staging"

    @cached_property
    def raw_staging_record(self) -> Path:
        return self.root / "raw.staging.json"

    @cached_property
    def twin(self) -> Path:
        return twin_record(self.raw)

    @cached_property
    def lock(self) -> Path:
        return self.root / "lock"

    @cached_property
    def runs_open(self) -> Path:
        return self.root / "runs-open"

    @cached_property
    def prepared(self) -> Path:
        return self.root / (PREPARED if self.profile == "v1" else f"{PREPARED}-{self.profile}")

    @cached_property
    def staging(self) -> Path:
        return self.prepared.with_name(f"{self.prepared.name}.staging")

    @cached_property
    def replaced(self) -> Path:
        return self.prepared.with_name(f"{self.prepared.name}.replaced")

    @cached_property
    def attempt(self) -> Path:
        return self.staging / "attempt.json"

    @cached_property
    def written(self) -> Path:
        return self.staging / "written.jsonl"

    @cached_property
    def unpacked(self) -> Path:
        return self.staging / "unpacked"

    @cached_property
    def public(self) -> Path:
        return self.prepared / PUBLIC

    @cached_property
    def private(self) -> Path:
        return self.prepared / PRIVATE

    @cached_property
    def manifest(self) -> Path:
        return self.prepared / MANIFEST


def moved(path: Path, old: Path, new: Path) -> Path:
    """Where a file is found when `new` stands in for the folder `old`; files elsewhere stay where they are."""
    return new / path.relative_to(old) if path.is_relative_to(old) else path


def twin_record(raw: Path) -> Path:
    return raw.parent / "twin.json"


def data_dir_record(data_dir: Path) -> Path:
    return data_dir / "data-dir.json"


def grades_log(folder: Path) -> Path:
    """In a data directory or, if that is not writable, in a folder of reports."""
    return folder / "grades.jsonl"
