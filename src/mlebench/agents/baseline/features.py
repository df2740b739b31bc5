"""Turns the columns of training and test rows into numbers, and texts into weighted words.

`dense` keeps missing values as missing; `sparse` holds what suits linear models: words and categories.
"""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

import media
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

MISSING = ("", "nan", "NaN", "NA", "None", "null", "NULL")
MOST_CATEGORIES = 60
MOST_WORDS = 20_000
MOST_COLUMNS = 2_000
TOPICS = 40
DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass
class Features:
    dense: np.ndarray
    sparse: sparse.csr_matrix

    def __len__(self) -> int:
        return self.dense.shape[0]

    def take(self, rows: np.ndarray) -> "Features":
        return Features(self.dense[rows], self.sparse[rows])


def of_rows(train: pd.DataFrame, test: pd.DataFrame, more: np.ndarray | None, seed: int) -> tuple[Features, Features]:
    """Features of training and test rows. `more` holds further numbers for both, training rows first."""
    split = len(train)
    both = pd.concat([train, test], ignore_index=True)
    dense: list[np.ndarray] = [] if more is None else [more]
    words: list[sparse.csr_matrix] = []
    texts: dict[str, pd.Series] = {}
    numbers: dict[str, np.ndarray] = {}
    for name in list(both)[:MOST_COLUMNS]:
        _add_column(both[name], split, dense, words, texts, numbers)
    dense += _differences(numbers)
    dense += [_likeness(texts[a], texts[b]) for a, b in itertools.combinations(list(texts)[:5], 2)]
    joined = sparse.csr_matrix(sparse.hstack(words)) if words else sparse.csr_matrix((len(both), 0))
    if joined.shape[1] > 2 * TOPICS:
        dense.append(TruncatedSVD(TOPICS, random_state=seed).fit_transform(joined))
    matrix = np.hstack([_as_columns(part) for part in dense]) if dense else np.zeros((len(both), 0), np.float32)
    matrix = np.where(np.isfinite(matrix), matrix, np.nan).astype(np.float32)
    all_features = Features(matrix, joined)
    return all_features.take(np.arange(split)), all_features.take(np.arange(split, len(both)))


def _as_columns(part: np.ndarray) -> np.ndarray:
    return part.reshape(len(part), -1).astype(np.float32)


def _add_column(
    cells: pd.Series,
    split: int,
    dense: list[np.ndarray],
    words: list[sparse.csr_matrix],
    texts: dict[str, pd.Series],
    numbers: dict[str, np.ndarray],
) -> None:
    if any(isinstance(cell, list) for cell in cells.iloc[:20]):
        dense.append(_of_lists(cells))
        return
    cells = cells.astype(str)
    is_present = ~cells.isin(MISSING)
    sample = cells[is_present].iloc[:2000]
    values = pd.to_numeric(cells.where(is_present), errors="coerce")
    if len(sample) and values[sample.index].notna().mean() > 0.95:
        dense.append(values.to_numpy(np.float64))
        numbers[str(cells.name)] = values.to_numpy(np.float64)
        if cells.iloc[:split].nunique() <= MOST_CATEGORIES // 3:
            words.append(_categories(cells, split))
    elif len(sample) and sample.str.match(DATE).mean() > 0.95:
        dense.append(_of_dates(cells))
    elif cells.iloc[:split].nunique() <= MOST_CATEGORIES:
        codes, _ = pd.factorize(cells, sort=True)
        dense.append(codes.astype(np.float64))
        words.append(_categories(cells, split))
    else:
        dense.append(_lengths(cells))
        words.append(_words(cells, split))
        texts[str(cells.name)] = cells


def _categories(cells: pd.Series, split: int) -> sparse.csr_matrix:
    encoder = OneHotEncoder(handle_unknown="ignore", min_frequency=2)
    column = cells.to_numpy(dtype=object).reshape(-1, 1)
    encoder.fit(column[:split])
    return sparse.csr_matrix(encoder.transform(column))


def _words(cells: pd.Series, split: int) -> sparse.csr_matrix:
    """Words and pairs of words; letters, for short texts without words."""
    has_words = cells.iloc[:2000].str.count(" ").mean() >= 1
    options = {"max_features": MOST_WORDS, "min_df": 2 if split > 50 else 1, "sublinear_tf": True, "dtype": np.float32}
    tokenizer = (
        {"ngram_range": (1, 2), "token_pattern": r"\S+"} if has_words else {"analyzer": "char", "ngram_range": (1, 3)}
    )
    vectorizer = TfidfVectorizer(**options, **tokenizer)
    try:
        vectorizer.fit(cells.iloc[:split].str.slice(stop=20_000))
    except ValueError:  # no word is frequent enough
        return sparse.csr_matrix((len(cells), 0))
    return sparse.csr_matrix(vectorizer.transform(cells.str.slice(stop=20_000)))


def _lengths(cells: pd.Series) -> np.ndarray:
    letters = cells.str.len()
    tokens = cells.str.split()
    counted = [cells.str.count(pattern) for pattern in (r"[A-Z]", r"\d", r"[!?]", r"[.,;]", r"\n")]
    unique = tokens.map(lambda words: len(set(words)) / max(1, len(words)))
    return np.column_stack([letters, tokens.str.len(), unique, *counted])


def _likeness(left: pd.Series, right: pd.Series) -> np.ndarray:
    """How much two texts of a row have in common: words, and groups of three letters."""
    return np.array([_common(a, b) for a, b in zip(left, right, strict=True)])


def _common(left: str, right: str) -> list[float]:
    left, right = left[:2000].lower(), right[:2000].lower()
    of_three: Callable[[str], set[str]] = lambda text: {text[i : i + 3] for i in range(len(text) - 2)}  # noqa: E731
    shares = []
    for a, b in ((set(left.split()), set(right.split())), (of_three(left), of_three(right))):
        shares.append(len(a & b) / max(1, len(a | b)))
    return [*shares, float(len(left) - len(right))]


def _of_dates(cells: pd.Series) -> np.ndarray:
    dates = pd.to_datetime(cells, errors="coerce", utc=True, format="mixed")
    parts = [dates.dt.year, dates.dt.month, dates.dt.day, dates.dt.dayofweek, dates.dt.hour]
    moment = (dates - pd.Timestamp("2000-01-01", tz="UTC")).dt.total_seconds()
    return np.column_stack([*(part.to_numpy(np.float64, na_value=np.nan) for part in parts), moment])


def _of_lists(cells: pd.Series) -> np.ndarray:
    """Lists as long as a square are pictures; others are series."""
    vectors = []
    for cell in cells:
        values = np.asarray(cell if isinstance(cell, list) else [], dtype=np.float64)
        side = round(len(values) ** 0.5)
        is_plane = side >= 16 and side * side == len(values)
        vectors.append(media.of_plane(values.reshape(side, side)) if is_plane else media.of_series(values))
    width = max(map(len, vectors))
    return np.array([vector if len(vector) == width else np.full(width, np.nan) for vector in vectors])


def _differences(numbers: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Differences of columns whose names differ in one word only, such as the start and the end of a trip."""
    words = {name: re.split(r"[\s_]", name.lower()) for name in numbers}
    pairs = [
        (a, b)
        for a, b in itertools.combinations(list(numbers)[:60], 2)
        if len(words[a]) == len(words[b]) > 1 and sum(x != y for x, y in zip(words[a], words[b], strict=True)) == 1
    ]
    columns = []
    for a, b in pairs[:20]:
        difference = numbers[a] - numbers[b]
        columns += [difference, np.abs(difference)]
    return columns
