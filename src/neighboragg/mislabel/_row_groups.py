"""Rows that must not vouch for each other: given groups, and exact duplicates."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from neighboragg._typing import Array, FloatArray, IntArray
from neighboragg.exceptions import TrustWarning

__all__ = ["RowGroups", "by_appearance", "duplicate_groups", "group_rows", "merge_groups", "warn_if_known"]

# From this share of identical rows on, they are worth a note.
MANY_DUPLICATES = 0.05


@dataclass(frozen=True)
class RowGroups:
    """Group of each row, what to know about it, and whether duplicates tie most rows together."""

    groups: IntArray
    notes: tuple[str, ...]
    tied_together: bool


def group_rows(
    X: FloatArray, codes: IntArray, groups: IntArray | None, *, join_duplicates: bool
) -> RowGroups:
    """Join given groups and, if asked, identical rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Labels, only to tell of identical rows that differ in theirs.
    groups : ndarray of shape (n,) or None
        Given groups, numbered from 0.
    join_duplicates : bool

    Returns
    -------
    groups : RowGroups
    """
    n = len(X)
    copies = duplicate_groups(X)
    given = np.arange(n) if groups is None else groups
    joined = merge_groups(given, copies) if join_duplicates else given
    largest = int(np.bincount(joined).max())
    tied_together = 2 * largest > n and largest > int(np.bincount(given).max())
    return RowGroups(joined, _notes(copies, codes, joined if join_duplicates else None), tied_together)


def by_appearance(values: Array) -> IntArray:
    """Values numbered in the order in which they first appear, so that it does not matter what they are called."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse.ravel()])


def duplicate_groups(X: FloatArray) -> IntArray:
    """Number the distinct rows of `X`; identical rows get the same number."""
    return np.unique(_as_bytes(X), return_inverse=True)[1].ravel()


def warn_if_known(X: FloatArray, fitted: FloatArray, owner: str) -> None:
    """Warn if most of the new rows are rows that were fitted on."""
    if mostly_known(X, fitted):
        warnings.warn(
            f"Most rows of X passed to {owner} are rows it was fitted on, which then vouch for themselves.\n"
            "Hint: take result_.mask and result_.scores for these.",
            TrustWarning,
            stacklevel=4,
        )


def mostly_known(X: FloatArray, fitted: FloatArray) -> bool:
    """Whether most rows are identical to a fitted one, and more than fitted ones are to each other."""
    keys = _as_bytes(fitted)
    if not len(X) or 2 * (known := float(np.isin(_as_bytes(X.astype(fitted.dtype)), keys).mean())) <= 1:
        return False
    _, counts = np.unique(keys, return_counts=True)
    return bool(known > 2 * counts[counts > 1].sum() / len(keys))


def _as_bytes(X: FloatArray) -> Array:
    """Each row as one value to compare."""
    # Adding zero turns -0.0 into 0.0, so that equal numbers are equal bytes.
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def merge_groups(first: IntArray, second: IntArray) -> IntArray:
    """Number the rows that hang together, directly or through others, by either grouping.

    Both number their groups from 0.
    """
    n_first = int(first.max()) + 1
    n_nodes = n_first + int(second.max()) + 1
    links = coo_array((np.ones(len(first)), (first, n_first + second)), shape=(n_nodes, n_nodes))
    return connected_components(links, directed=False)[1][first].astype(np.intp)


def _notes(copies: IntArray, codes: IntArray, joined: IntArray | None) -> tuple[str, ...]:
    """What to know about identical rows; `joined` if they do not vouch for each other."""
    notes = []
    n, n_identical = len(copies), int((np.bincount(copies)[copies] > 1).sum())
    if n_identical >= MANY_DUPLICATES * n:
        how = (
            "they vouch for each other (duplicates='ignore')."
            if joined is None
            else "they do not vouch for each other. If they are independent rows, not copies, pass "
            "duplicates='ignore'."
        )
        notes.append(f"{n_identical:,} of {n:,} rows have the same features as another row; {how}")
    labels = np.unique(np.column_stack([copies, codes]), axis=0)[:, 0]
    disputed = int((np.bincount(labels)[copies] > 1).sum())
    if disputed:
        notes.append(f"{disputed:,} rows have the same features as a row with another label.")
    return tuple(notes)
