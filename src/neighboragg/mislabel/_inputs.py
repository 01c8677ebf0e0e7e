"""Checks of what is passed to the detector: rows of any kind, groups, verified rows, the classifier."""

from typing import Any

import numpy as np
from scipy import sparse

from neighboragg._typing import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._validation import check_labels, check_rows, check_same_length
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import TabularFeatures
from neighboragg.persistence import Stored

__all__ = ["RowVectors", "check_classes", "check_groups", "check_verified", "is_table"]


def is_table(X: Any) -> bool:
    """Whether the rows need more than a look at their numbers: a data frame, sparse, or with strings."""
    if sparse.issparse(X) or (hasattr(X, "columns") and hasattr(X, "shape")):
        return True
    return np.asarray(X).dtype.kind in "OUS"


class RowVectors(Stored):
    """How rows become vectors: arrays of numbers as they are, tables by :class:`TabularFeatures`."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.features: TabularFeatures | None = None
        self.n_features: int | None = None
        self.columns: list[str] | None = None

    def fit_transform(self, X: Any) -> FloatArray:
        """Vectors of the rows to judge."""
        if is_table(X):
            self.features = TabularFeatures()
            vectors = self.features.fit_transform(X)
            self.columns = _column_names(X)
            self.n_features = self.features.n_features_in_
        else:
            vectors = check_rows(X, "X", self.owner)
            self.n_features = vectors.shape[1]
        if not len(vectors):
            raise InvalidInputError(f"X passed to {self.owner} has no rows.")
        return vectors

    def transform(self, X: Any) -> FloatArray:
        """Vectors of further rows."""
        if self.features is None:
            return check_rows(X, "X", self.owner, n_features=self.n_features)
        names = _column_names(X)
        if None not in (names, self.columns) and names != self.columns:
            raise InvalidInputError(
                f"X passed to {self.owner} has the columns {names}, but fit had {self.columns}.\n"
                "Hint: pass the same columns in the same order."
            )
        return check_rows(self.features.transform(X), "X", self.owner)


def _column_names(X: Any) -> list[str] | None:
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


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
            f"groups passed to {owner} puts all {n} rows into one group, so that none can vouch for another.\n"
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
