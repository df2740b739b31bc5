"""Rows are paired by slice and organ (G7), and all of them count (G4).

Distances are measured for each organ by itself, with its pixels where they are (G4). Masks are read strictly (G16).
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, parse_masks, parse_runs
from mlebench.metrics import dice_of_runs, hausdorff_of_volumes

from .grade import HOPELESS, pixels_of_slices
from .grade import stand_in as stand_in_v1
from .prepare import prepare_scans

ROW = ["id", "class"]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    answers = prepare_scans(raw, public)
    private.write("test.csv", answers.assign(_cases_and_days(answers["id"])))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """0.4 · mean Dice of rows + 0.6 · (1 - mean Hausdorff distance of an organ on a day).

    Both means leave out what is empty in the truth and in the prediction.
    """
    truth = answers.sort_values(ROW, ignore_index=True)
    sizes = truth["image_height"] * truth["image_width"]
    masks = parse_masks(submission.sort_values(ROW)["predicted"], sizes, column="predicted", ids=truth["id"])
    true_masks = [parse_runs(text, int(size)) for text, size in zip(truth["predicted"], sizes, strict=True)]
    distances = []
    for rows in truth.groupby(["case", "day", "class"]).indices.values():
        height, width = (int(truth[f"image_{side}"].iloc[rows[0]]) for side in ("height", "width"))
        volumes = (
            pixels_of_slices(rows[:, None].tolist(), either, height * width).reshape(len(rows), height, width)
            for either in (true_masks, masks)
        )
        distances.append(hausdorff_of_volumes(*volumes, hopeless_ratio=HOPELESS))
    return 0.4 * _mean(list(map(dice_of_runs, masks, true_masks)), 1) + 0.6 * (1 - _mean(distances, 0))


def stand_in(public: Path) -> pd.DataFrame:
    rows = stand_in_v1(public)
    return rows.assign(**_cases_and_days(rows["id"].to_numpy()))


def _cases_and_days(ids: np.ndarray) -> dict[str, np.ndarray]:
    """What the ids of slices say: case123_day20_slice_0001."""
    cases, days = zip(*(id.split("_")[:2] for id in ids), strict=True)
    return {"case": np.array(cases, dtype=object), "day": np.array(days, dtype=object)}


def _mean(values: list[float], empty_value: float) -> float:
    """The mean of those that are numbers."""
    return np.float64(empty_value if np.isnan(values).all() else np.nanmean(values))
