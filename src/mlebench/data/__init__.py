"""Raw data → prepared data: `prepare` from a source, `verify`. The functions defined here are for existing clients."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench.core.paths import CompetitionPaths
from mlebench.data.archives import extract, is_empty
from mlebench.data.kaggle import KaggleSource
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import LocalSource, PathSource, RawSource, TwinSource
from mlebench.data.state import is_dataset_prepared, preparation_fault
from mlebench.data.verification import verify
from mlebench.registry import Competition
from mlebench.scoring import read_leaderboard

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KaggleSource",
    "LocalSource",
    "Options",
    "PathSource",
    "RawSource",
    "TwinSource",
    "create_prepared_dir",
    "download_and_prepare_dataset",
    "download_dataset",
    "ensure_leaderboard_exists",
    "extract",
    "generate_checksums",
    "get_checksum",
    "get_leaderboard",
    "is_dataset_prepared",
    "is_empty",
    "prepare",
    "verify",
]


# fmt: off
def download_and_prepare_dataset(
    competition: Competition, keep_raw: bool = True,
    overwrite_checksums: bool = False, overwrite_leaderboard: bool = False, skip_verification: bool = False,
) -> None:
    # fmt: on
    """Prepare a competition from the raw data in its data directory, downloaded from Kaggle when there is none."""
    ensure_leaderboard_exists(competition, force=overwrite_leaderboard)
    if not overwrite_checksums and preparation_fault(competition) is None:  # also a twin, where no real data may go
        return
    # `keep_raw` has always been the default here; it keeps raw files, but does not unpack any just to keep them.
    keep_raw = keep_raw and competition.kit_prepare_fn is None
    options = Options(keep_raw, verify=not skip_verification, overwrite_checksums=overwrite_checksums)
    # Looked up by name at call time: some scripts replace it with their own.
    source = KaggleSource(download=lambda paths, *_: download_dataset(competition_id=paths.id, download_dir=paths.root))
    prepare(competition, source, options)


def download_dataset(competition_id: str, download_dir: Path, quiet: bool = False, force: bool = False) -> Path:
    """Download Kaggle's archive of a competition as `<id>.zip`; an existing one is kept unless `force`."""
    from mlebench.data.kaggle import download

    del quiet  # nothing is printed either way

    folder = Path(download_dir)
    folders = CompetitionPaths(folder.parent, competition_id, folder=folder)
    if folders.archive.is_file() and not force:
        return folders.archive
    return download(folders)


def create_prepared_dir(competition: Competition) -> None:
    for folder in (competition.public_dir, competition.private_dir):
        folder.mkdir(parents=True, exist_ok=True)


def generate_checksums(
    target_dir: Path, exts: Sequence[str] | None = None, exclude: Sequence[Path] | None = None
) -> dict[str, str]:
    """md5 of the files directly in a folder that have one of these endings; tables and records if none are given."""
    from mlebench.data.manifest import TABLES

    endings = TABLES if exts is None else tuple(f".{ending}" for ending in exts)
    files = (path for path in sorted(target_dir.iterdir()) if path.name.endswith(endings) and path.is_file())
    return {path.name: get_checksum(path) for path in files if path not in (exclude or ())}


def get_checksum(fpath: Path) -> str:
    """The md5 of a file."""
    from mlebench.engine.raw_streams import md5_of

    return md5_of(Path(fpath))


def ensure_leaderboard_exists(competition: Competition, force: bool = False) -> Path:
    """The competition's leaderboard file, which ships with the package; `force` downloads it from Kaggle again."""
    if force:
        from mlebench.data.kaggle import download_leaderboard

        return download_leaderboard(competition)
    read_leaderboard(competition.leaderboard)
    return competition.leaderboard


def get_leaderboard(competition: Competition) -> "pd.DataFrame":
    """The human leaderboard, best first, with a column `score`."""
    import pandas as pd

    read_leaderboard(competition.leaderboard)  # says what is wrong with the file
    return pd.read_csv(competition.leaderboard)
