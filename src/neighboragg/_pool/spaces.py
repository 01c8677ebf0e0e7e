"""Neighbors of labeled rows in every view and learned metric, with a row's own group left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neighboragg._core.progress import step
from neighboragg._core.stats import by_appearance
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._core.views import LEARNED, learned, split_views
from neighboragg._pool.crossfit import fold_splits
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError
from neighboragg.search import ClasswiseNeighbors, learn_metric, map_rows

# Up to this size a group is skipped among some more neighbors; a larger one is left out of an index of its own.
SMALL_GROUP = 32


class UngroupedNeighbors(Stored):
    """The kept rows by class, searched so that no row finds one of its own group."""

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
    """Mark the nearest of all among the nearest by class, by (distance, row number)."""
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


# A map is learned for each fold and pass: a rough one, by fewer and longer steps, finds as many wrong labels.
N_STEPS, LEARNING_RATE = 40, 0.06


class LearnedNeighbors(Stored):
    """The kept rows by class in learned maps, a map for each fold."""

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


@dataclass(frozen=True)
class Near(Stored):
    """Distances and row numbers of the nearest rows of each class in one view, each of shape (n, C, K)."""

    distances: FloatArray
    rows: IntArray

    def nearest(self, n_neighbors: int) -> BoolArray:
        """Which of them are the nearest of all."""
        return nearest_overall(self.distances, self.rows, n_neighbors)


class ViewNeighbors(Stored):
    """The kept rows by class in each view, searched so that no row finds one of its own group."""

    def __init__(
        self,
        X: FloatArray,
        views: Mapping[str, int],
        codes: IntArray,
        groups: IntArray,
        keep: BoolArray,
        *,
        n_classes: int,
        n_neighbors: int,
        seed: int,
        n_jobs: int | None,
        folds: Array | None,
    ) -> None:
        for view in views:
            if view.endswith(LEARNED):
                raise InvalidInputError(
                    f"A view cannot be called {view!r}, as the learned metric of another could be.\n"
                    "Hint: give it another name."
                )
        self.widths = dict(views)
        parts = self._parts(X)
        size: dict[str, Any] = {"n_classes": n_classes, "n_neighbors": n_neighbors, "n_jobs": n_jobs}
        self.by_view = {
            view: UngroupedNeighbors(part, codes, groups, keep, **size) for view, part in parts.items()
        }
        self.learned: dict[str, LearnedNeighbors] = {}
        if folds is not None:
            self.learned = {
                view: LearnedNeighbors(part, codes, folds, keep, seed=seed, **size)
                for view, part in parts.items()
            }

    def of_own_rows(self) -> dict[str, Near]:
        """The nearest of each row in each view; (inf, -1) where there are fewer."""
        found = {}
        for view, neighbors in self.by_view.items():
            found[view] = Near(*neighbors.of_own_rows())
            step()
        return found | {
            learned(view): Near(*neighbors.of_own_rows()) for view, neighbors in self.learned.items()
        }

    def of_new_rows(self, X: FloatArray) -> dict[str, Near]:
        """The nearest of rows that belong to no group."""
        parts = self._parts(X)
        found = {view: Near(*self.by_view[view].of_new_rows(part)) for view, part in parts.items()}
        return found | {
            learned(view): Near(*neighbors.of_new_rows(parts[view]))
            for view, neighbors in self.learned.items()
        }

    @property
    def vectors(self) -> FloatArray:
        """All views side by side, as they were passed."""
        parts = [neighbors.X for neighbors in self.by_view.values()]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _parts(self, X: FloatArray) -> dict[str, FloatArray]:
        if len(self.widths) == 1:
            return dict.fromkeys(self.widths, X)
        return {view: np.ascontiguousarray(part) for view, part in split_views(X, self.widths).items()}
