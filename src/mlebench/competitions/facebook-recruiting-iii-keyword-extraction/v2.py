"""Questions with the same title and text are on one side of the split (S4).

A tag counts as wrong also where no test question has it (G13). Titles and tags like `null` are text, in files (F14) and
in grading (G22), and the sample has the columns of a submission (F6).
"""

from hashlib import blake2b

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, align, renumber, split_whole_groups
from mlebench.metrics import micro_f1_of_tags

from .prepare import TEST_SHARE, questions_of, with_sample_tags, write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    questions = questions_of(raw, ["Title", "Body", "Tags"])
    groups = _groups_of(questions)
    train, test = split_whole_groups(np.arange(len(questions)), groups, test_size=TEST_SHARE, seed=0)
    tested = questions.take(test)
    write_parts(questions.take(train), tested, public, private)
    public.write("sample_submission.csv", with_sample_tags(tested.select("Id")))
    private.write("groups.csv", tested.select("Id").rename({"Id": "id"}).assign(group=groups[test]))


def _groups_of(questions: Table) -> np.ndarray:
    """Numbers for pairs of title and text. The file has gigabytes, so only hashes of them are in memory."""
    titles, bodies = (renumber(questions.map_column(name, _hashes)) for name in ("Title", "Body"))
    return renumber(titles * len(questions) + bodies)


def _hashes(texts: np.ndarray) -> np.ndarray:
    """64 bits of each text, whatever its case and white space."""
    normal = (" ".join(text.lower().split()).encode("utf-8", "surrogatepass") for text in texts)
    return np.array([int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in normal], np.uint64)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Tags", values="text")
    return micro_f1_of_tags(y_true, y_pred)
