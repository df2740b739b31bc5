"""Raw data → prepared data. These names are for existing clients; the work is in `pipeline`."""

from pathlib import Path
from typing import TYPE_CHECKING

from mlebench.data.state import is_dataset_prepared
from mlebench.registry import Competition
from mlebench.scoring import read_leaderboard

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "download_and_prepare_dataset",
    "ensure_leaderboard_exists",
    "get_leaderboard",
    "is_dataset_prepared",
]


# fmt: off
def download_and_prepare_dataset(
    competition: Competition, keep_raw: bool = True,
    overwrite_checksums: bool = False, overwrite_leaderboard: bool = False, skip_verification: bool = False,
) -> None:
    # fmt: on
    """Prepare a competition from the raw data in its data directory, downloaded from Kaggle when there is none."""
    from mlebench.data.kaggle import KaggleSource
    from mlebench.data.pipeline import Options, prepare

    ensure_leaderboard_exists(competition, force=overwrite_leaderboard)
    # `keep_raw` has always been the default here; it keeps raw files, but none are unpacked only to be kept.
    keep_raw = keep_raw and getattr(competition.prepare_fn, "takes_paths", True)
    options = Options(keep_raw, verify=not skip_verification, overwrite_checksums=overwrite_checksums)
    prepare(competition, KaggleSource(), options)


def ensure_leaderboard_exists(competition: Competition, force: bool = False) -> Path:
    """The competition's leaderboard file, which ships with the package; `force` gets it from Kaggle anew."""
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
