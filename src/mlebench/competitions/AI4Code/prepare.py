import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, renumber


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    ancestors = raw.table("train_ancestors.csv")
    ancestors = ancestors.take(np.random.RandomState(0).permutation(len(ancestors)))
    in_test = _whole_families(ancestors["ancestor_id"], raw.scaled(20_000))
    train, test = ancestors.where(~in_test), ancestors.where(in_test)
    orders = raw.table("train_orders.csv")
    test_orders = orders.where_in("id", test["id"])

    for folder, notebooks in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{id}.json"), f"{folder}/{id}.json") for id in notebooks["id"])
    public.write("train_orders.csv", orders.where_in("id", train["id"]))
    public.write("train_ancestors.csv", train)
    public.write("sample_submission.csv", _orders_as_given(raw, test_orders["id"]))
    private.write("test_orders.csv", test_orders)


def _whole_families(ancestors: np.ndarray, places: int) -> np.ndarray:
    """Which notebooks to take so that all copies of one stay together: families are added in turn if they fit."""
    family = renumber(ancestors)
    taken = []
    for size in np.bincount(family).tolist():
        taken.append(size <= places)
        places -= size if taken[-1] else 0
    return np.array(taken)[family]


def _orders_as_given(raw: Raw, ids: np.ndarray) -> Table:
    """Cells in the order of the files: code in its order, then text in none."""
    orders = [" ".join(raw.json(f"train/{id}.json")["cell_type"]) for id in ids]
    return Table.from_columns({"id": ids, "cell_order": orders})
