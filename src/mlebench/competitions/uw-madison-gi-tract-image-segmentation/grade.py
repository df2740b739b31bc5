from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    RunLengths,
    as_words,
    column_values,
    parse_masks,
    parse_runs,
    read_frame,
    require_columns,
    values_of,
)
from mlebench.metrics import dice_of_runs, hausdorff_of_volumes

HOPELESS = 10  # times the true volume: larger predictions are not measured but given the largest distance

Shape = tuple[int, int]  # height and width


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """0.4 · mean Dice of rows + 0.6 · (1 - mean Hausdorff distance of days).

    Quirk of v1: ids only say which rows belong to one day. Rows are paired with the truth by position, days by their
    order, and any surplus on either side is left out; without a pair the score is NaN, and valid.
    """
    require_columns(submission, ["id", "class", "predicted"])
    paired = submission.head(len(answers))
    ids, true_ids = values_of(paired["id"]), values_of(answers["id"])
    if not all(isinstance(id, str) for id in ids):
        raise InvalidSubmissionError("Column `id` must hold the ids of slices; it has empty cells or numbers.")
    shapes = list(zip(answers["image_height"].astype(int), answers["image_width"].astype(int), strict=True))
    pixels = [height * width for height, width in shapes]
    # Quirk of v1: accepts runs past the last pixel, and encodings of 1 or 3 numbers.
    encodings = column_values(paired, "predicted", "words")
    masks = parse_masks(encodings, pixels[: len(paired)], column="predicted", ids=ids, strict=False)
    true_encodings = as_words(values_of(answers["predicted"]))
    true_masks = [parse_runs(text, size, strict=False) for text, size in zip(true_encodings, pixels, strict=True)]

    days = _days(ids)
    if any(len(_sizes(day, shapes)) > 1 for day in days):
        raise InvalidSubmissionError("Rows are not in the order of `test.csv`: images of one day differ in size.")
    dices = [dice_of_runs(mask, true) for mask, true in zip(masks, true_masks, strict=False)]
    distances = [
        hausdorff_of_volumes(
            _volume(true_day, true_masks, shapes), _volume(day, masks, shapes), hopeless_ratio=HOPELESS
        )
        for day, true_day in zip(days, _days(true_ids), strict=False)
    ]
    return 0.4 * _mean(dices) + 0.6 * (1 - _mean(distances))


def stand_in(public: Path) -> pd.DataFrame:
    """The rows to predict, with the true sizes of their images and one pixel as each one's mask."""
    sizes = {}
    for scan in (public / "test").glob("*/*/scans/slice_*.png"):
        _, number, width, height, *_ = scan.stem.split("_")
        sizes[f"{scan.parts[-3]}_slice_{number}"] = int(width), int(height)
    rows = read_frame(public / "test.csv")
    width, height = np.array([sizes[id] for id in rows["id"]]).T
    return rows.assign(predicted="1 1", image_width=width, image_height=height)


def _days(ids: np.ndarray) -> list[list[list[int]]]:
    """For each day of a case, in the order of ids, its slices; for each of these the rows, one for each organ."""
    days: dict[str, dict[str, list[int]]] = {}
    for row in np.argsort(ids, kind="stable").tolist():
        id = str(ids[row])
        days.setdefault(id.split("_slice_")[0], {}).setdefault(id, []).append(row)
    return [list(slices.values()) for slices in days.values()]


def _sizes(slices: list[list[int]], shapes: Sequence[Shape]) -> set[Shape]:
    return {shapes[row] for rows in slices for row in rows}


def _volume(slices: list[list[int]], masks: Sequence[RunLengths], shapes: Sequence[Shape]) -> np.ndarray:
    """The masks of a day as one mask of slices × height × width, with all organs in it."""
    ((height, width),) = _sizes(slices, shapes)
    pixels = pixels_of_slices(slices, masks, height * width)
    # Quirk of v1: runs are taken to go down the columns, where their pixels are numbered along the rows.
    return pixels.reshape(len(slices), width, height).swapaxes(1, 2)


def pixels_of_slices(slices: Sequence[Sequence[int]], masks: Sequence[RunLengths], size: int) -> np.ndarray:
    """Which pixels are in a mask, slice after slice; each slice has this many pixels and the masks of these rows."""
    covered = np.zeros(len(slices) * size, dtype=bool)
    drawn = [(place, masks[row]) for place, rows in enumerate(slices) for row in rows if len(masks[row].starts)]
    if drawn:  # runs are filled in, not decoded: most of a picture is empty
        first_pixels = [place * size for place, mask in drawn for _ in mask.starts]
        starts = np.concatenate([mask.starts for _, mask in drawn]) + first_pixels
        lengths = np.concatenate([mask.ends - mask.starts for _, mask in drawn])
        covered[np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())] = True
    return covered


def _mean(values: list[float]) -> float:
    """The mean of those that are numbers: two empty masks have no score."""
    return np.float64(np.nanmean(values)) if not np.isnan(values).all() else np.float64("nan")
