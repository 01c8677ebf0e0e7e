"""Rows of any kind: arrays, data frames, sparse matrices, texts and pictures."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from neighboragg._inputs import as_plain, expand_vectors, is_frame
from neighboragg._typing import Array, BoolArray, IntArray
from neighboragg.exceptions import InvalidInputError

__all__ = ["as_rows", "draw_sample", "holdout_mask", "reference_names", "row_names", "take_rows"]

# Of a class in a sample, where it has so many: what is learned should know every class.
LEAST_OF_A_CLASS = 50


def holdout_mask(codes: IntArray, fraction: float, rng: np.random.RandomState) -> BoolArray:
    """Which rows to hold out: the same share of every class, and never the only row of a class."""
    counts = np.bincount(codes)
    # Rounding at random keeps rare classes in the validation rows now and then.
    quota = np.minimum(np.floor(fraction * counts + rng.uniform(size=len(counts))), np.maximum(counts - 1, 0))
    if not quota.any() and counts.max() > 1:
        quota[counts.argmax()] = 1
    shuffled = rng.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    held_out = np.zeros(len(codes), dtype=bool)
    held_out[order] = rank < quota[codes[order]]
    return held_out


def draw_sample(codes: IntArray, most: int, seed: int) -> IntArray:
    """Positions of `most` rows drawn at random, and some more of rare classes; all if there are no more than that.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row.
    most : int
    seed : int

    Returns
    -------
    rows : ndarray of int
        Ascending. They depend on the order of the rows alone, not on how they are cut into blocks.
    """
    n = len(codes)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    chosen = np.zeros(n, dtype=bool)
    chosen[order[:most]] = True
    counts = np.bincount(codes)
    for c in np.flatnonzero(
        (counts > 0) & (np.bincount(codes[chosen], minlength=len(counts)) < LEAST_OF_A_CLASS)
    ):
        chosen[order[codes[order] == c][:LEAST_OF_A_CLASS]] = True
    return np.flatnonzero(chosen)


def as_rows(X: Any, owner: str, *, keep_vectors: bool = False) -> Any:
    """Data frames, sparse matrices, texts and pictures as they are, all else as an array with two dimensions.

    A column of vectors becomes a column for each of their numbers, unless they are to be kept.
    """
    if type(X) is np.ndarray and X.ndim == 2:
        return X
    X = as_plain(X, "X", owner)
    if sparse.issparse(X) or is_frame(X):
        return X if keep_vectors else expand_vectors(X, "X", owner)
    if _holds_pictures(X):
        pictures = np.empty(len(X), dtype=object)
        for i, value in enumerate(X):  # one by one: NumPy would make one array of pictures of the same size
            pictures[i] = str(value) if isinstance(value, os.PathLike) else value
        return pictures
    rows = np.asarray(X)
    if rows.ndim == 1 and not (len(rows) and isinstance(rows[0], str)):
        raise InvalidInputError(
            f"X passed to {owner} must have two dimensions. Got a 1-D array of shape {rows.shape}.\n"
            "Hint: Reshape your data: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature."
        )
    return rows


def _holds_pictures(X: Any) -> bool:
    """Whether rows are PIL images, or paths of files."""
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and np.ndim(X[:0]) == 1 and len(X) else None
    return isinstance(first, os.PathLike) or all(hasattr(first, name) for name in ("convert", "tobytes"))


def take_rows(X: Any, rows: IntArray) -> Any:
    """Some rows of an array, data frame or sparse matrix, of the same kind."""
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def row_names(X: Any, n: int) -> Array:
    """What a user calls the rows: the index of a pandas frame, else their positions."""
    return X.index if hasattr(X, "iloc") else np.arange(n)


def reference_names(frames: Sequence[Any]) -> Array | None:
    """Names of the rows of pandas frames one after the other, as numbers or strings; None if by position."""
    if not all(hasattr(frame, "iloc") for frame in frames):
        return None
    names = np.concatenate([np.asarray(frame.index) for frame in frames])
    if names.dtype.kind in "iu":
        return None if np.array_equal(names, np.arange(len(names))) else names
    return np.array([str(name) for name in names])
