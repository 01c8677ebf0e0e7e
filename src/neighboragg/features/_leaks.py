"""Columns that reveal the label."""

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray

MAX_CATEGORIES = 100


def to_matrix(frame: Any) -> FloatArray:
    """Numbers, indicators of their missing values, and one column per category."""
    blocks = [column_block(frame[name]) for name in frame.columns]
    return np.hstack(blocks) if blocks else np.empty((len(frame), 0))


def column_block(column: Any) -> FloatArray:
    """Columns of the matrix made from one column; none if all its values are missing."""
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    if pandas.api.types.is_datetime64_any_dtype(column):
        column = column.astype("int64").where(column.notna())
    if pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_bool_dtype(column):
        return _numbers(column)
    text = column.astype(str).to_numpy(dtype=object).astype(str)
    categories, counts = np.unique(text, return_counts=True)
    if len(categories) > MAX_CATEGORIES:
        frequent = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
        categories = np.sort(categories[frequent[counts[frequent] > 1]])
    return (text[:, None] == categories[None, :]).astype(np.float64)


def _numbers(column: Any) -> FloatArray:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.where(np.isfinite(values), values, np.nan)
    missing = np.isnan(values)
    if missing.all():
        return np.empty((len(values), 0))
    filled = np.where(missing, np.nanmedian(values), values)
    return np.column_stack([filled, missing] if missing.any() else [filled]).astype(np.float64)


LARGEST_SAMPLE = 5_000
N_FOLDS = 5
# A column is a suspect if it alone avoids this share of the errors of always guessing one class.
NEAR_CERTAIN = 0.95
# It reveals the label if all others together make this many times as many errors, and at least this many.
TIMES_WRONG, MIN_WRONG = 4, 5


def leaking_columns(frame: Any, labels: Array, *, random_state: int = 0) -> dict[str, str]:
    """Columns which alone predict the label almost perfectly while all others together do not."""
    codes = np.unique(labels, return_inverse=True)[1].astype(np.intp)
    rows = np.arange(len(codes))
    if len(rows) > LARGEST_SAMPLE:
        rows = np.sort(np.random.default_rng(random_state).choice(rows, LARGEST_SAMPLE, replace=False))
    codes = np.unique(codes[rows], return_inverse=True)[1].astype(np.intp)
    counts = np.bincount(codes)
    if len(counts) < 2 or not len(frame.columns):
        return {}
    sample = frame.iloc[rows]
    folds = _folds(codes, random_state)
    wrong = {name: _wrong_alone(sample[name], codes, folds) for name in sample.columns}
    by_guess = len(codes) - int(counts.max())
    candidates = [name for name, missed in wrong.items() if missed.sum() <= (1 - NEAR_CERTAIN) * by_guess]
    if not candidates:
        return {}
    rest = sample.drop(columns=candidates)
    by_rest = _wrong_together(rest, codes, folds, random_state)
    leaks = {}
    for name in candidates:
        alone = wrong[name]
        gained, lost = int((by_rest & ~alone).sum()), int((alone & ~by_rest).sum())
        if gained >= MIN_WRONG and gained >= TIMES_WRONG * lost and len(rest.columns):
            leaks[name] = _reason(sample[name], codes, alone, by_rest)
        elif not len(rest.columns) and _is_code(sample[name], codes):
            leaks[name] = "encodes the label"
    return leaks


def _reason(column: Any, codes: IntArray, alone: BoolArray, by_rest: BoolArray) -> str:
    if _is_code(column, codes):
        return "encodes the label"
    return f"alone predicts {1 - alone.mean():.1%} of the labels, all other columns together {1 - by_rest.mean():.1%}"


def _is_code(column: Any, codes: IntArray) -> bool:
    """Whether values and labels correspond one to one."""
    values = _value_codes(column)
    pairs = len(np.unique(np.column_stack([values, codes]), axis=0))
    return pairs == values.max() + 1 == codes.max() + 1


def _folds(codes: IntArray, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Stratified folds; rare classes are spread over as many folds as possible."""
    n_folds = min(N_FOLDS, len(codes))
    counts = np.bincount(codes)
    # Rare classes are pooled, because the split would warn about them.
    strata = np.where(counts[codes] >= n_folds, codes, -1)
    if (strata == -1).sum() < n_folds:
        strata[strata == -1] = codes[counts[codes].argmax()]
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(codes, strata))


def _wrong_alone(column: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]]) -> BoolArray:
    """Rows that the column alone gets wrong, out of fold, by the better of its predictors."""
    values = _value_codes(column)
    by_value = np.empty(len(codes), dtype=np.intp)
    for train, test in folds:
        table = np.zeros((values.max() + 1, codes.max() + 1))
        np.add.at(table, (values[train], codes[train]), 1.0)
        seen = table.sum(axis=1) > 0
        best = np.where(seen, table.argmax(axis=1), table.sum(axis=0).argmax())
        by_value[test] = best[values[test]]
    wrong = by_value != codes
    if column.dtype.kind in "biufM":
        numbers = column_block(column)
        if numbers.shape[1]:
            tree = DecisionTreeClassifier(max_leaf_nodes=2 * (int(codes.max()) + 1) + 6, random_state=0)
            by_tree = _predicted(tree, numbers, codes, folds) != codes
            wrong = by_tree if by_tree.sum() < wrong.sum() else wrong
    return np.asarray(wrong)


def _wrong_together(
    frame: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]], seed: int
) -> BoolArray:
    """Rows that all columns of a frame get wrong together, out of fold."""
    blocks = [column_block(frame[name]) for name in frame.columns]
    X = np.hstack(blocks) if blocks else np.empty((len(codes), 0))
    if not X.shape[1]:
        return np.asarray(codes != np.bincount(codes).argmax())
    trees = ExtraTreesClassifier(50, random_state=seed)
    return np.asarray(_predicted(trees, X, codes, folds) != codes)


def _predicted(
    model: Any, X: FloatArray, codes: IntArray, folds: list[tuple[IntArray, IntArray]]
) -> IntArray:
    return cross_val_predict(model, X, codes, cv=folds)


def _value_codes(column: Any) -> IntArray:
    """A number for each different value; a missing one is a value too."""
    codes = column.astype(object).where(column.notna(), "\0missing").map(str)
    return np.unique(codes.to_numpy(dtype=object).astype(str), return_inverse=True)[1].astype(np.intp)
