"""The name of the giver is left out: it is known only for requests that were granted (L6)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align
from mlebench.metrics import auroc

from .prepare import prepare_without


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_without(["giver_username_if_known"], raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Any finite number ranks requests (G18).
    y_pred, y_true = align(submission, answers, id="request_id", target="requester_received_pizza", values="numbers")
    return auroc(y_true, y_pred)
