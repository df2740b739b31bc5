import pandas as pd

from mlebench.kit import align, parse_masks, parse_runs, require_only_columns
from mlebench.metrics import mean_precision_over_ious

PIXELS = 101 * 101


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_only_columns(submission, "id", ["rle_mask"], id_first=False)
    encodings, truth = align(submission, answers, id="id", target="rle_mask", values="words")
    # Quirk of v1: accepts runs past the last pixel, and encodings of 1 or 3 numbers.
    masks = parse_masks(
        encodings, [PIXELS] * len(answers), column="rle_mask", ids=sorted(submission["id"]), strict=False
    )
    true_masks = [parse_runs(encoding, PIXELS, strict=False) for encoding in truth]
    # Quirk of v1: an empty mask, where there is salt, is one of the whole image.
    return mean_precision_over_ious(true_masks, masks, pixels_of_empty_prediction=PIXELS)
