"""Checks of what is passed to the detector: rows of any kind, groups, verified rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from neighboragg._inputs import as_plain, refuse_labels_as_column
from neighboragg._row_selection import as_rows
from neighboragg._typing import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._validation import check_labels, check_same_length
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import as_strings, is_texts

__all__ = [
    "check_classes",
    "check_groups",
    "check_vectors",
    "check_verified",
    "n_rows",
    "read_rows",
    "refuse_labels_among",
    "width",
    "without_code",
]

# A mapping with these names holds other rows under each, not other views of the same.
PARTS_OF_A_SPLIT = {"test", "train", "unsupervised", "validation"}


def read_rows(X: Any, owner: str, *, keep_vectors: bool = False) -> Any:
    """Data frames and sparse matrices as they are, texts as an array of strings, all else as a 2-D array.

    A mapping is several views of the rows, each of any of these kinds.
    """
    if isinstance(X, Mapping) and X and not set(X) <= PARTS_OF_A_SPLIT:
        return _read_views(X, owner)
    X = as_plain(X, "X", owner)
    if is_texts(X):
        return as_strings(np.asarray(X, dtype=object))
    return as_rows(X, owner, keep_vectors=keep_vectors)


def width(rows: Any) -> int:
    """Number of features; texts are one."""
    if isinstance(rows, dict):
        return sum(map(width, rows.values()))
    return int(rows.shape[1]) if len(rows.shape) == 2 else 1


def n_rows(rows: Any) -> int:
    """Number of rows, the same in all views."""
    return int(next(iter(rows.values())).shape[0] if isinstance(rows, dict) else rows.shape[0])


def refuse_labels_among(rows: Any, labels: Array, owner: str) -> None:
    """Raise if a column of the rows, in any view, is the labels themselves."""
    for view in rows.values() if isinstance(rows, dict) else [rows]:
        refuse_labels_as_column(view, labels, owner)


def without_code(state: dict[str, Any], owner: str) -> dict[str, Any]:
    """What to save of a detector: not the code of a callable, which is passed again when it is loaded."""
    features = state["features"]
    if isinstance(features, Mapping) and any(_is_code(view) for view in features.values()):
        raise InvalidParameterError(
            f"This {owner} cannot be saved: a view of its features is a callable, which is code.\n"
            "Hint: make it a transformer, or pass the vectors of the views."
        )
    return {name: value for name, value in state.items() if name != "features" or not _is_code(value)}


def _is_code(features: Any) -> bool:
    return callable(features) and not hasattr(features, "transform")


def check_vectors(vectors: FloatArray, owner: str) -> FloatArray:
    """Raise if there is nothing to compare rows by."""
    if not vectors.shape[1]:
        raise InvalidInputError(
            f"X passed to {owner} has nothing to judge labels by: no numbers, no category that occurs twice, and no "
            "texts with a word in common.\nHint: pass embeddings of the rows, or further columns."
        )
    return vectors


def _read_views(views: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    for name in views:
        if not isinstance(name, str):
            raise InvalidInputError(f"The views of X passed to {owner} must be called by str. Got {name!r}.")
    rows = {name: read_rows(view, owner) for name, view in views.items()}
    lengths = {name: view.shape[0] for name, view in rows.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
        raise InvalidInputError(
            f"The views of X passed to {owner} must have the same number of rows. Got {given}.\n"
            "Hint: each view needs a vector for every row, in the same order."
        )
    return rows


def check_classes(y: ArrayLike, rows: FloatArray, owner: str) -> tuple[Array, IntArray]:
    """Return the sorted classes, at least two, and the position of each label among them."""
    labels = check_labels(y, "y", owner)
    check_same_length(rows, "X", labels, "y", owner)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y passed to {owner} has only the class {classes.tolist()[0]!r}; a label can be wrong only if there "
            "are at least two.\nHint: pass the rows of all classes together."
        )
    return classes, codes.astype(np.intp)


def check_groups(groups: ArrayLike, n: int, owner: str) -> IntArray:
    """Return a number for each row, the same for rows of one group; a missing value is a group of its own."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InvalidInputError(
            f"groups passed to {owner} must hold one value for each of the {n} rows. Got shape {values.shape}."
        )
    # Row by row, and only NaN differs from itself.
    missing = np.asarray((values == None) | (values != values))  # noqa: E711
    known = values[~missing].astype(str) if values.dtype.kind == "O" else values[~missing]
    numbers = np.empty(n, dtype=np.intp)
    names, numbers[~missing] = np.unique(known, return_inverse=True)
    numbers[missing] = len(names) + np.arange(missing.sum())
    if numbers.max() == 0:
        raise InvalidInputError(
            f"groups passed to {owner} puts all {n} rows into one group, so none can vouch for another.\n"
            "Hint: leave out groups if the rows are independent."
        )
    return numbers


def check_verified(verified: ArrayLike | None, n: int, owner: str) -> BoolArray:
    """Return a mask of the verified rows, from a mask, from row numbers or from nothing."""
    mask = np.zeros(n, dtype=bool)
    if verified is None:
        return mask
    values = np.asarray(verified)
    if values.dtype.kind == "b" and values.shape == (n,):
        mask |= values
    elif values.dtype.kind in "iu" and values.ndim == 1 and ((values >= 0) & (values < n)).all():
        if len(np.unique(values)) < len(values):
            raise InvalidInputError(
                f"verified passed to {owner} names the same row more than once.\n"
                "Hint: whole numbers are row numbers; pass booleans for a mask."
            )
        mask[values] = True
    else:
        raise InvalidInputError(
            f"verified passed to {owner} must be a mask of the {n} rows, or row numbers from 0 to {n - 1}. "
            f"Got shape {values.shape} of dtype {values.dtype}."
        )
    if mask.all() or not mask.any():
        raise InvalidInputError(
            f"verified passed to {owner} marks {'all' if mask.any() else 'none'} of the {n} rows.\n"
            "Hint: mark the rows whose labels have been verified, and leave out verified if there are none."
        )
    return mask
