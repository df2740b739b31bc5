"""Where raw data comes from. A source gives a folder or an archive; the pipeline does the rest.

A download is one more class here with the same three members.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from mlebench.data.state import claim_data_dir
from mlebench.errors import PrerequisiteError
from mlebench.registry import Competition, code_name
from mlebench.scoring import import_fn


class Source(Protocol):
    twin: bool

    def fetch(self, competition: Competition) -> Path:
        """Make the raw data available; a folder or a zip archive."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the manifest says about it; `kind` is one word."""
        ...


class LocalSource:
    """Raw data that lies in the data directory already: raw/, or else <id>.zip."""

    twin = False

    def fetch(self, competition: Competition) -> Path:
        where = competition.paths
        if where.raw.is_dir() and any(where.raw.iterdir()):
            return where.raw
        if where.archive.is_file():
            return where.archive
        raise PrerequisiteError(
            f"there is no raw data of {competition.id}: put Kaggle's archive at {where.archive}, "
            f"or try synthetic data with `mlebench prepare -c {competition.id} --twin`"
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": "local"}


@dataclass(frozen=True)
class TwinSource:
    """Synthetic raw data, made on the spot; the same for the same seed and size."""

    seed: int = 0
    size: float = 1.0
    twin = True

    def fetch(self, competition: Competition) -> Path:
        where = competition.paths
        claim_data_dir(where.data_dir, twin=True)
        if where.raw.is_dir() and self.matches(_read(where.twin)):
            return where.raw
        for leftover in (where.raw_staging, where.raw):
            if leftover.exists():
                shutil.rmtree(leftover)
        where.twin.unlink(missing_ok=True)
        scaled = make_twin(competition, where.raw_staging, seed=self.seed, size=self.size)
        where.twin.write_text(json.dumps(asdict(self) | {"scaled": scaled}) + "\n", encoding="utf-8")
        where.raw_staging.rename(where.raw)
        return where.raw

    def matches(self, record: dict[str, Any] | None) -> bool:
        """Whether a record (of a twin, or of a manifest's source) is of this very twin."""
        return record is not None and {"seed": self.seed, "size": self.size}.items() <= record.items()

    def describe(self) -> dict[str, Any]:
        return {"kind": "twin"} | asdict(self)


def make_twin(competition: Competition, folder: Path, *, seed: int, size: float) -> dict[int, int]:
    """Write a twin's raw files; returns which sizes here stand for absolute ones of the real data."""
    from mlebench.kit.twins import TwinFolder

    name = f"{code_name(competition.id)}.twin:twin"
    if not (competition.folder / "twin.py").is_file():
        raise PrerequisiteError(f"{competition.id} has no twin; add twin.py to {competition.folder}")
    folder.mkdir(parents=True)
    raw = TwinFolder(folder, seed=seed, size=size)
    import_fn(name)(raw)
    return raw.scaled


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
