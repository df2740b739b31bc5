"""Reads the review of a program that AIDE asks its feedback model for. Standard library only."""

import json
import math
from typing import Any


def read_review(text: str | None) -> dict[str, Any] | None:
    """A review in the form AIDE can use; None if the text is not one. AIDE rejects whole numbers as a metric."""
    try:
        review = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(review, dict) or not isinstance(review.get("is_bug"), bool):
        return None
    metric = review.get("metric")
    if not isinstance(metric, int | float) or isinstance(metric, bool) or not math.isfinite(metric):
        metric = None
    return {
        "is_bug": review["is_bug"],
        "summary": str(review.get("summary") or ""),
        "metric": None if metric is None else float(metric),
        "lower_is_better": review.get("lower_is_better") is not False,
    }
