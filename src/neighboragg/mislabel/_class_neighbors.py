"""Neighbors by class that are not of the row's own group, and the votes of the nearest overall."""

import numpy as np

from neighboragg._typing import BoolArray, FloatArray, IntArray
from neighboragg.neighbors import ClasswiseNeighbors
from neighboragg.persistence import Stored

__all__ = ["UngroupedNeighbors", "nearest_overall"]

# Up to this size a group is skipped among some more neighbors; a larger one is left out of an index of its own.
SMALL_GROUP = 32


class UngroupedNeighbors(Stored):
    """The kept rows by class, searched so that no row finds one of its own group.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
    groups : ndarray of shape (n,)
    keep : ndarray of bool of shape (n,)
        Rows that may be found. A class with fewer than two of them is kept whole.
    n_classes, n_neighbors : int
    n_jobs : int or None
    """

    def __init__(
        self,
        X: FloatArray,
        codes: IntArray,
        groups: IntArray,
        keep: BoolArray,
        *,
        n_classes: int,
        n_neighbors: int,
        n_jobs: int | None,
    ) -> None:
        scarce = np.bincount(codes[keep], minlength=n_classes) < 2
        self.X, self.codes, self.groups = X, codes, groups
        self.kept = np.flatnonzero(keep | scarce[codes])
        self.n_classes, self.n_neighbors, self.n_jobs = n_classes, n_neighbors, n_jobs
        self.index = self._index(self.kept)

    def of_new_rows(self, X: FloatArray) -> tuple[FloatArray, IntArray]:
        """Distances and row numbers, each (m, C, K), for rows that belong to no group."""
        distances, found = self.index.kneighbors(X)
        return distances, np.where(found < 0, -1, self.kept[found])

    def of_own_rows(self) -> tuple[FloatArray, IntArray]:
        """Distances and row numbers, each (n, C, K), for all n rows; (inf, -1) where there are fewer."""
        sizes = np.bincount(self.groups)[self.groups]
        if (sizes == 1).all():
            return self._skipping_groups(np.arange(len(self.X)), 0)
        shape = (len(self.X), self.n_classes, self.n_neighbors)
        distances, rows = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
        for chosen, spare in (
            (np.flatnonzero(sizes == 1), 0),
            (
                np.flatnonzero((sizes > 1) & (sizes <= SMALL_GROUP)),
                int(sizes[sizes <= SMALL_GROUP].max(initial=1)) - 1,
            ),
        ):
            if len(chosen):
                distances[chosen], rows[chosen] = self._skipping_groups(chosen, spare)
        for group in np.unique(self.groups[sizes > SMALL_GROUP]):
            chosen = np.flatnonzero(self.groups == group)
            others = self.kept[self.groups[self.kept] != group]
            if len(others):
                distances[chosen], found = self._index(others).kneighbors(self.X[chosen])
                rows[chosen] = np.where(found < 0, -1, others[found])
        return distances, rows

    def _index(self, rows: IntArray) -> ClasswiseNeighbors:
        index = ClasswiseNeighbors(self.n_neighbors, n_jobs=self.n_jobs)
        return index.fit(self.X[rows], self.codes[rows], classes=np.arange(self.n_classes))

    def _skipping_groups(self, chosen: IntArray, spare: int) -> tuple[FloatArray, IntArray]:
        """Neighbors of rows whose groups hold at most `spare` others."""
        own = np.full(len(self.X), -1)
        own[self.kept] = np.arange(len(self.kept))
        distances, found = self.index.kneighbors(
            self.X[chosen], self.n_neighbors + spare, exclude=own[chosen]
        )
        rows = np.where(found < 0, -1, self.kept[found])
        if spare:
            same_group = (rows >= 0) & (self.groups[rows] == self.groups[chosen][:, None, None])
            # Stable: the others stay in the order of distance and row number.
            order = np.argsort(same_group | (rows < 0), axis=2, kind="stable")[:, :, : self.n_neighbors]
            distances = np.take_along_axis(np.where(same_group, np.inf, distances), order, axis=2)
            rows = np.take_along_axis(np.where(same_group, -1, rows), order, axis=2)
        return distances, rows


def nearest_overall(distances: FloatArray, rows: IntArray, n_neighbors: int) -> BoolArray:
    """Mark the nearest of all among the nearest by class, by (distance, row number).

    Parameters
    ----------
    distances, rows : ndarray of shape (n, C, K)
        Nearest rows of each class with K at least `n_neighbors`; (inf, -1) where there are fewer.
    n_neighbors : int

    Returns
    -------
    nearest : ndarray of bool of shape (n, C, K)
        `n_neighbors` true values for each of the n rows, fewer where there are fewer neighbors.
    """
    shape = (len(distances), distances.shape[1] * distances.shape[2])
    flat, ids = distances.reshape(shape), rows.reshape(shape)
    reach = np.partition(flat, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    nearest = (flat <= reach[:, None]) & (ids >= 0)
    tied = np.flatnonzero(nearest.sum(axis=1) > n_neighbors)
    if len(tied):
        order = np.lexsort((ids[tied], flat[tied]), axis=1)[:, :n_neighbors]
        nearest[tied] = False
        nearest[tied[:, None], order] = True
    return nearest.reshape(distances.shape)
