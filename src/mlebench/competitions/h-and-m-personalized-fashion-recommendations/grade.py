from collections.abc import Iterator

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, as_text, is_in, require_only_columns, sorting_order, values_of
from mlebench.metrics import mean_average_precision_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_only_columns(submission, "customer_id", ["prediction"], id_first=False)
    customers, counted = values_of(submission["customer_id"]), values_of(answers["customer_id"])
    if not is_in(counted, customers).all():  # without naming them: it is secret who bought something
        raise InvalidSubmissionError("Customers are missing: give all that sample_submission.csv has.")
    rows = np.flatnonzero(is_in(customers, counted))
    # Quirk of v1: the rows of both sides are sorted and paired one by one, so a customer given twice moves all later
    # ones to the wrong row; rows left over at the end are ignored.
    predicted = _by_customer(customers[rows], values_of(submission["prediction"])[rows])
    bought = _by_customer(counted, values_of(answers["prediction"]))
    return mean_average_precision_at_k(map(set, bought), predicted, 12)


def _by_customer(customers: np.ndarray, articles: np.ndarray) -> Iterator[list[str]]:
    """The articles in each row, in the order of customers."""
    ordered = articles[sorting_order(customers, "customer_id")]
    return (text.split(" ") for text in as_text(ordered))
