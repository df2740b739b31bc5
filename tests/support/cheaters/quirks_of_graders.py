"""Quirks of a grader that reward what says nothing."""

import re
from pathlib import Path

import pandas as pd

from support.cheaters import cheater


@cheater("G14", "tgs-salt-identification-challenge")
def blank_masks(public: Path) -> pd.DataFrame:
    """No mask is a mask of the whole image where there is salt, and right where there is none."""
    return pd.read_csv(public / "sample_submission.csv").assign(rle_mask="")


@cheater("G10", "tensorflow2-question-answering")
def no_answers(public: Path) -> pd.DataFrame:
    """Saying that there is no answer is right for more than half of all rows."""
    return pd.read_csv(public / "sample_submission.csv", dtype=str).assign(PredictionString="")


@cheater("G13", "facebook-recruiting-iii-keyword-extraction")
def all_words(public: Path) -> pd.DataFrame:
    """Questions name their tags, and words that are no question's tag cost nothing."""
    test = pd.read_csv(public / "test.csv", dtype=str, na_filter=False)
    words = (test["Title"] + " " + test["Body"]).str.lower()
    return test[["Id"]].assign(Tags=[" ".join(re.findall(r"[\w.#+-]+", text)) for text in words])
