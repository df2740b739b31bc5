"""The order of all predictions counts, as on the leaderboard, and their column is `prediction` alone (G11)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, sorting_order, values_of
from mlebench.metrics import bias_auroc

from .grade import HALF, IDENTITIES
from .prepare import prepare as prepare_v1


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_v1(raw, public, private)
    truth = raw.table("test_private_expanded.csv").select("id", "toxicity")
    private.write("gold_submission.csv", truth.rename({"toxicity": "prediction"}))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predictions = submission.rename(columns={"prediction": "toxicity"})
    y_score, toxicity = align(predictions, answers, id="id", target="toxicity", values="numbers")
    subgroups = answers[IDENTITIES].to_numpy(dtype=float)[sorting_order(values_of(answers["id"]), "id")]
    return bias_auroc(toxicity >= HALF, y_score, subgroups >= HALF)
