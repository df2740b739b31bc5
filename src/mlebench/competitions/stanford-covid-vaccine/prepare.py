import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, join_text, split_rows

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    records = raw.records("train.json")
    good = good_rows(records)
    _, chosen = split_rows(good, test_size=size_of_test(records), seed=0)
    in_test = np.isin(np.arange(len(records)), chosen)
    prepare_sides(records.where(~in_test), records.where(in_test), raw, public, private)


def good_rows(records: Table) -> np.ndarray:
    """The row numbers of molecules of good quality, from which the test set is chosen."""
    return np.flatnonzero(records["SN_filter"] > 0)


def size_of_test(records: Table) -> int:
    """A tenth of all molecules."""
    return int(len(records) * 0.1)


def prepare_sides(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    answers = _positions(test)
    public.write_records("train.json", _numbered(train))
    public.write_records("test.json", _numbered(test.select(*raw.records("test.json").columns)))
    sample = answers.drop("keep").assign(dict.fromkeys(TARGETS, 0.0))
    public.write("sample_submission.csv", sample, float_format="%.10f")
    private.write("test.csv", answers, float_format="%.10f")


def _numbered(records: Table) -> Table:
    return records.assign(index=np.arange(len(records)))


def _positions(records: Table) -> Table:
    """A row for each position of each molecule; those after the measured ones are not scored, and their values are
    0."""
    lengths, ids = records["seq_length"], records["id"]
    position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    measured = position < np.repeat(records["seq_scored"], lengths)
    columns = {"id_seqpos": join_text(np.repeat(ids, lengths), "_", position)}
    for name in TARGETS:
        columns[name] = np.zeros(len(position))
        columns[name][measured] = np.concatenate(records[name])
    return Table.from_columns({**columns, "keep": measured})
