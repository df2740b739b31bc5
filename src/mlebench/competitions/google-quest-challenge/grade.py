import pandas as pd

from mlebench.kit import align, require_only_columns
from mlebench.metrics import mean_column_spearman


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    targets = [name for name in answers.columns if name != "qa_id"]
    require_only_columns(submission, "qa_id", targets, id_first=False)
    # Quirk of v1: ids are not compared, they only put the rows in order; and any values that have ranks are accepted,
    # text, and gaps, which make the score NaN.
    y_pred, y_true = align(submission, answers, id="qa_id", target=targets, values="any", compare_ids=False)
    return mean_column_spearman(y_true, y_pred)
