import numpy as np

from mlebench.kit import Output, Raw, accepts_paths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    transactions = raw.table("transactions_train.csv")
    days = transactions["t_dat"]  # such as 2020-09-22: text order is time order
    # Quirk of v1: the last seven days are counted including both ends, so there are eight.
    first_of_test = str(np.datetime64(days.max()) - 7)
    in_test = days >= first_of_test

    public.write("transactions_train.csv", transactions.where(~in_test))
    for name in ("articles.csv", "customers.csv", "sample_submission.csv"):
        public.place(raw.file(name), name)
    public.place_tree(raw, "images", "images")
    # Quirk of v1: article ids are read as numbers, which costs them their leading zero.
    bought = transactions.where(in_test).group_join("customer_id", "article_id")
    private.write("answers.csv", bought.rename({"article_id": "prediction"}))
