"""Articles are text of ten digits everywhere (G9), and the test period has seven days (F8).

A submission has exactly the customers of the sample, each once, whoever of them counts (L9): its form sees to that.
"""

import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, values_of
from mlebench.metrics import mean_average_precision_at_k

from .prepare import prepare_all_but_answers


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    customers = raw.table("sample_submission.csv")["customer_id"]
    bought = prepare_all_but_answers(7, ["article_id"], raw, public).where_in("customer_id", customers)
    articles = [" ".join(dict.fromkeys(text.split(" "))) for text in bought["prediction"]]  # each of them once
    answers = bought.assign(prediction=articles)
    private.write("answers.csv", answers)

    known = dict(zip(answers["customer_id"], articles, strict=True))
    gold = {"customer_id": customers, "prediction": [known.get(customer, "") for customer in customers]}
    private.write("gold_submission.csv", Table.from_columns(gold))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    rows = pd.Index(values_of(submission["customer_id"])).get_indexer(pd.Index(values_of(answers["customer_id"])))
    predicted = values_of(submission["prediction"])[rows]
    bought = values_of(answers["prediction"])
    return mean_average_precision_at_k((set(text.split()) for text in bought), map(str.split, predicted), 12)
