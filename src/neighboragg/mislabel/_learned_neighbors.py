"""Neighbors in a linear map that was learned without the rows that are looked up in it."""

import numpy as np

from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg.crossfit import fold_splits
from neighboragg.mislabel._row_groups import by_appearance
from neighboragg.neighbors import ClasswiseNeighbors, learn_metric, map_rows
from neighboragg.persistence import Stored

__all__ = ["LearnedNeighbors"]

# A map is learned for each fold and pass: a rough one, by fewer and longer steps, finds as many wrong labels.
N_STEPS, LEARNING_RATE = 40, 0.06


class LearnedNeighbors(Stored):
    """The kept rows by class in learned maps, a map for each fold.

    A map that had seen the label of a row would bring the row near to others of that label, wrong or not. So each row
    is looked up in the map learned from the other folds, among the rows of these; groups are whole in folds, so that
    no row finds one of its own group. New rows are looked up in the map of the first fold.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes, folds : ndarray of shape (n,)
    keep : ndarray of bool of shape (n,)
        Rows to learn from and to find. A class with fewer than two of them is kept whole.
    n_classes, n_neighbors, seed : int
    n_jobs : int or None
    """

    def __init__(
        self,
        X: FloatArray,
        codes: IntArray,
        folds: Array,
        keep: BoolArray,
        *,
        n_classes: int,
        n_neighbors: int,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        scarce = np.bincount(codes[keep], minlength=n_classes) < 2
        kept = keep | scarce[codes]
        shape = (len(X), n_classes, n_neighbors)
        self.distances, self.rows = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
        self.map: FloatArray | None = None
        labels = by_appearance(codes)
        for others, fold in fold_splits(folds):
            train = others[kept[others]]
            if len(np.unique(codes[train])) < 2:
                continue  # nothing to tell apart
            learned = learn_metric(
                X[train], labels[train], n_steps=N_STEPS, learning_rate=LEARNING_RATE, random_state=seed
            )
            index = ClasswiseNeighbors(n_neighbors, n_jobs=n_jobs)
            index.fit(map_rows(X[train], learned), codes[train], classes=np.arange(n_classes))
            self.distances[fold], found = index.kneighbors(map_rows(X[fold], learned))
            self.rows[fold] = np.where(found < 0, -1, train[found])
            if self.map is None:
                self.map, self.index, self.train = learned, index, train

    def of_own_rows(self) -> tuple[FloatArray, IntArray]:
        """Distances and row numbers, each (n, C, K), for all n rows; (inf, -1) where there are fewer."""
        return self.distances, self.rows

    def of_new_rows(self, X: FloatArray) -> tuple[FloatArray, IntArray]:
        """Distances and row numbers, each (m, C, K)."""
        if self.map is None:
            shape = (len(X), *self.rows.shape[1:])
            return np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
        distances, found = self.index.kneighbors(map_rows(X, self.map))
        return distances, np.where(found < 0, -1, self.train[found])

    def _saved_state(self) -> dict[str, object]:
        # What was found for the rows of fit has been used; new rows need their number alone.
        return vars(self) | {"distances": self.distances[:0], "rows": self.rows[:0]}
