"""Profile v2 of uw-madison-gi-tract-image-segmentation: distances are scipy's, of each organ by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import directed_hausdorff

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import encode_runs
from mlebench.registry import Registry

ORGANS = ("large_bowel", "small_bowel", "stomach")
SHAPES = {"case1_day0": (3, 4, 7), "case1_day9": (2, 4, 7), "case2_day0": (4, 6, 5)}  # slices, height, width
Volumes = dict[tuple[str, str], np.ndarray]


def grade(predicted: Volumes, true: Volumes) -> float:
    truth = _table(true)
    parts = truth["id"].str.split("_", n=2, expand=True)
    shapes = (parts[0] + "_" + parts[1]).map(SHAPES)
    answers = truth.assign(image_height=shapes.str[1], image_width=shapes.str[2], case=parts[0], day=parts[1])
    submission = _table(predicted).sample(frac=1, random_state=0)
    return (
        Registry(profile="v2")
        .get_competition("uw-madison-gi-tract-image-segmentation")
        .grader.grade_fn(submission, answers)
    )


def test_scores_are_those_of_scipy() -> None:
    for seed in range(20):
        predicted, true = _volumes(2 * seed), _volumes(2 * seed + 1)
        dices = [_dice(*masks) for day in true for masks in zip(predicted[day], true[day], strict=True)]
        distances = [_distance(predicted[day], true[day]) for day in true]
        expected = 0.4 * np.nanmean(dices) + 0.6 * (1 - np.nanmean(distances))
        assert grade(predicted, true) == pytest.approx(expected)


def test_empty_masks_of_empty_truth_are_right_and_all_others_wrong() -> None:
    nothing = {day: np.zeros_like(volume) for day, volume in _volumes(0).items()}
    assert grade(nothing, nothing) == 1
    assert grade(_volumes(0), nothing) == 0
    assert grade(nothing, _volumes(0)) == 0


def test_runs_past_the_last_pixel_are_refused() -> None:
    day = ("case1_day0", "stomach")
    wide = _volumes(0) | {day: np.ones((3, 5, 7), dtype=bool)}
    with pytest.raises(InvalidSubmissionError, match=r"case1_day0_slice_0001: .*past the last pixel"):
        grade(wide, _volumes(0))


def _volumes(seed: int) -> Volumes:
    rng = np.random.RandomState(seed)
    days = [(day, organ) for day in SHAPES for organ in ORGANS]
    return {(day, organ): rng.rand(*SHAPES[day]) < rng.choice([0, 0.2, 0.5]) for day, organ in days}


def _table(volumes: Volumes) -> pd.DataFrame:
    rows = [
        (f"{day}_slice_{number:04d}", organ, " ".join(map(str, encode_runs(mask.T))))
        for (day, organ), volume in volumes.items()
        for number, mask in enumerate(volume, 1)
    ]
    return pd.DataFrame(rows, columns=["id", "class", "predicted"])


def _dice(predicted: np.ndarray, true: np.ndarray) -> float:
    both = predicted.sum() + true.sum()
    return 2 * (predicted & true).sum() / both if both else np.nan


def _distance(predicted: np.ndarray, true: np.ndarray) -> float:
    ours, theirs = (np.argwhere(mask) / mask.shape for mask in (predicted, true))
    if not len(ours) or not len(theirs):
        return np.nan if len(ours) == len(theirs) else 1
    if len(ours) > 10 * len(theirs):
        return 1
    return max(directed_hausdorff(ours, theirs)[0], directed_hausdorff(theirs, ours)[0]) / 3**0.5
