from collections.abc import Collection

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # Quirks of v1: the last seven days are counted including both ends, so there are eight; article ids are read as
    # numbers, which costs them their leading zero.
    private.write("answers.csv", prepare_all_but_answers(8, (), raw, public))


def prepare_all_but_answers(days: int, text: Collection[str], raw: Raw, public: Output) -> Table:
    """Write the public files; return what each customer bought in the last so many days.

    In the columns of `text`, what looks like a number is a text.
    """
    transactions = raw.table("transactions_train.csv", text=text)
    day = transactions["t_dat"]  # such as 2020-09-22: text order is time order
    in_test = day >= str(np.datetime64(day.max()) - (days - 1))

    public.write("transactions_train.csv", transactions.where(~in_test))
    for name in ("articles.csv", "customers.csv", "sample_submission.csv"):
        public.place(raw.file(name), name)
    public.place_tree(raw, "images", "images")
    bought = transactions.where(in_test).group_join("customer_id", "article_id")
    return bought.rename({"article_id": "prediction"})
