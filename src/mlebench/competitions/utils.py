"""Names that competitions written for the reference import from here; ours use `mlebench.kit`."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlebench.core.errors import InvalidSubmissionError
from mlebench.engine.records.tfrecords import tfrecord_values
from mlebench.kit.checks import align
from mlebench.kit.rle import decode_runs, encode_runs, parse_runs
from mlebench.utils import get_logger

__all__ = [
    "df_to_one_hot",
    "get_ids_from_tf_records",
    "get_logger",
    "is_one_hot_encoded",
    "one_hot_dfs_to_log_loss_inputs",
    "prepare_for_accuracy_metric",
    "prepare_for_auroc_metric",
    "rle_decode",
    "rle_encode",
    "rles_to_masks",
]


def df_to_one_hot(df: pd.DataFrame, id_column: str, target_column: str, classes: list[str]) -> pd.DataFrame:
    hits = df[target_column].to_numpy(dtype=object)[:, None] == np.array(classes, dtype=object)
    one_hot = pd.DataFrame(hits.astype(int), index=df.index, columns=classes)
    one_hot.insert(0, id_column, df[id_column])
    return one_hot


def is_one_hot_encoded(xs: np.ndarray) -> bool:
    return bool(np.isin(xs, (0, 1)).all() and np.allclose(xs.sum(axis=-1), 1))


def one_hot_dfs_to_log_loss_inputs(
    submission_one_hot: pd.DataFrame, answers_one_hot: pd.DataFrame, id_column: str = "id", apply_softmax: bool = True
) -> dict[str, Any]:
    classes = [name for name in answers_one_hot.columns if name != id_column]
    y_pred, y_true = align(submission_one_hot, answers_one_hot, id=id_column, target=classes, values="numbers")
    if apply_softmax and not is_one_hot_encoded(y_pred):
        weights = np.exp(y_pred - y_pred.max(axis=1, keepdims=True))
        y_pred = weights / weights.sum(axis=1, keepdims=True)
    return {"y_true": y_true, "y_pred": y_pred}


def prepare_for_accuracy_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, target_column: str, id_column: str
) -> dict[str, Any]:
    y_pred, y_true = align(submission, answers, id=id_column, target=target_column, values="any")
    return {"y_true": y_true, "y_pred": y_pred}


def prepare_for_auroc_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, id_col: str, target_col: str
) -> dict[str, Any]:
    y_score, y_true = align(submission, answers, id=id_col, target=target_col, values="probabilities")
    return {"y_true": y_true, "y_score": y_score}


def rle_decode(rle_string: str, height: int, width: int) -> np.ndarray:
    try:
        return decode_runs(parse_runs(rle_string, height * width, strict=False), height, width)
    except ValueError as error:
        raise InvalidSubmissionError(str(error)) from error


def rles_to_masks(rl_encodings: list[str], image_heights: list[int], image_widths: list[int]) -> list[np.ndarray]:
    return [rle_decode(*mask) for mask in zip(rl_encodings, image_heights, image_widths, strict=True)]


def rle_encode(x: np.ndarray, fg_val: int = 1) -> list[int]:
    return encode_runs(x, fg_val)


def get_ids_from_tf_records(tf_record_path: Path, id_feature: str = "image_name") -> list[str]:
    with Path(tf_record_path).open("rb") as stream:
        return [value.decode("utf-8") for value in tfrecord_values(stream, id_feature)]
