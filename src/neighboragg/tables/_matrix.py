"""Columns of a table as one matrix of numbers: missing values filled and marked, categories one-hot; not scaled."""

from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import FloatArray

__all__ = ["column_block", "to_matrix"]

MOST_CATEGORIES = 100


def to_matrix(frame: Any) -> FloatArray:
    """Numbers, then what marks their gaps, and one column for each category.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns to use, as :func:`prepared_frame` gives them.

    Returns
    -------
    X : ndarray of shape (n, n_features)

    Examples
    --------
    >>> import pandas as pd
    >>> from neighboragg.tables import to_matrix
    >>> to_matrix(pd.DataFrame({"size": [1.0, None, 3.0], "color": ["red", "blue", "red"]}))
    array([[1., 0., 0., 1.],
           [2., 1., 1., 0.],
           [3., 0., 0., 1.]])
    """
    blocks = [column_block(frame[name]) for name in frame.columns]
    return np.hstack(blocks) if blocks else np.empty((len(frame), 0))


def column_block(column: Any) -> FloatArray:
    """Columns of the matrix that one column becomes; none if it holds no value.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    block : ndarray of shape (n, k)
    """
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    if pandas.api.types.is_datetime64_any_dtype(column):
        column = column.astype("int64").where(column.notna())
    if pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_bool_dtype(column):
        return _numbers(column)
    text = column.astype(str).to_numpy(dtype=object).astype(str)
    categories, counts = np.unique(text, return_counts=True)
    if len(categories) > MOST_CATEGORIES:
        frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
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
