"""All depths are given (F3), a missed body of salt scores 0 (G14), and masks are read strictly (G16)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, parse_masks, parse_runs
from mlebench.metrics import mean_precision_over_ious

from .grade import PIXELS
from .prepare import prepare_images


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    ids = [id for side in prepare_images(raw, public, private) for id in side["id"].tolist()]
    public.write("depths.csv", raw.table("depths.csv").where_in("id", ids).sort_by("id"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    encodings, truth = align(submission, answers, id="id", target="rle_mask", values="text")
    ids = sorted(submission["id"])
    masks = parse_masks(encodings, [PIXELS] * len(answers), column="rle_mask", ids=ids)
    return mean_precision_over_ious([parse_runs(encoding, PIXELS) for encoding in truth], masks)
