from typing import Any

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, as_text, split_rows

CHUNK = 1000  # lines; the file is too large for memory, so it was split within each chunk
SHOWN = ("example_id", "question_text", "document_text", "long_answer_candidates")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = _split_within_chunks(examples_of(raw))
    write_parts(train, test, public, private)


def examples_of(raw: Raw) -> Table:
    return raw.records("simplified-nq-train.jsonl", chunk_lines=CHUNK)


def write_parts(train: Table, test: Table, public: Output, private: Output) -> Table:
    """Write both sides, and return the right answers as a submission, two rows for each example."""
    annotations = [only for (only,) in test["annotations"]]
    # Ids are whole numbers, which the pass over the file for the annotations also collected.
    train, test = _with_ids_as_text(train), _with_ids_as_text(test)
    gold = _gold(test["example_id"], annotations)

    public.write_records("simplified-nq-train.jsonl", train)
    public.write_records("simplified-nq-test.jsonl", test.select(*SHOWN))
    public.write("sample_submission.csv", gold.assign(PredictionString=""))
    private.write_records("test.jsonl", test)
    private.write("gold_submission.csv", gold)
    return gold


def _split_within_chunks(records: Table) -> tuple[Table, Table]:
    rows = np.arange(len(records))
    parts = [split_rows(rows[start : start + CHUNK], test_size=0.1, seed=0) for start in range(0, len(rows), CHUNK)]
    train, test = (np.concatenate(side) for side in zip(*parts, strict=True))
    return records.take(train), records.take(test)


def _with_ids_as_text(records: Table) -> Table:
    return records.assign(example_id=as_text(records["example_id"]))


def _gold(ids: np.ndarray, annotations: list[dict[str, Any]]) -> Table:
    return Table.from_columns(
        {
            "example_id": [f"{id}_{kind}" for id in ids for kind in ("short", "long")],
            "PredictionString": [answer for one in annotations for answer in (_short_answer(one), _long_answer(one))],
        }
    )


def _short_answer(annotation: dict[str, Any]) -> str:
    """One of several right answers: the first."""
    if annotation["yes_no_answer"] != "NONE":
        return annotation["yes_no_answer"]
    return _span(annotation["short_answers"][0]) if annotation["short_answers"] else ""


def _long_answer(annotation: dict[str, Any]) -> str:
    span = annotation["long_answer"]
    return _span(span) if span["start_token"] != -1 else ""


def _span(tokens: dict[str, int]) -> str:
    return f"{tokens['start_token']}:{tokens['end_token']}"
