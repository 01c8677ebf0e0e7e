"""Spaces: every view of the rows and its learned metric, with the neighbors of each class in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neighboragg._core.progress import advance
from neighboragg._core.stats import by_appearance
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._core.views import LEARNED, columns_of, learned, view_of
from neighboragg._pool.crossfit import Labels, fold_splits
from neighboragg._pool.evidence import FitData
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError
from neighboragg.search import (
    ClasswiseNeighbors,
    Streamed,
    StreamedNeighbors,
    index_for,
    learn_metric,
    map_rows,
)


@dataclass(frozen=True)
class Neighbors(Stored):
    """Distances and ids of the nearest rows of each class in one space, each of shape (n, C, K)."""

    distances: FloatArray
    ids: IntArray

    def nearest(self, n_neighbors: int) -> BoolArray:
        """Mask of the nearest neighbors over all classes."""
        return nearest_overall(self.distances, self.ids, n_neighbors)


@dataclass(frozen=True)
class Spaces(Stored):
    """The views of vectors by the number of their columns, and the components of the learned metrics."""

    views: dict[str, int]
    components: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Each view, followed by its learned metric where there is one."""
        return [
            name
            for view in self.views
            for name in (view, *([learned(view)] if view in self.components else []))
        ]

    @property
    def first(self) -> str:
        """The view whose neighbors are shown."""
        return next(iter(self.views))

    def map(self, name: str, X: FloatArray) -> FloatArray:
        """Rows in a space."""
        view = name if name in self.views else view_of(name)
        rows = X if len(self.views) == 1 else np.ascontiguousarray(X[:, columns_of(self.views)[view]])
        return rows if name == view else map_rows(rows, self.components[view])

    def views_to_learn(self, codes: IntArray) -> list[str]:
        """Views that a metric can be learned for."""
        return [view for view, width in self.views.items() if width > 1 and len(np.unique(codes)) > 1]

    def with_metrics(self, views: list[str], data: FitData, pool_rows: IntArray, seed: int) -> "Spaces":
        """The same views, with metrics for some of them, learned from training rows that are not pool rows."""
        rows = np.setdiff1d(np.arange(len(data.X)), pool_rows) if data.shared else np.arange(len(data.X))
        columns = columns_of(self.views)
        components = {
            view: learn_metric(data.X[rows, columns[view]], data.codes[rows], random_state=seed)
            for view in (views if len(rows) else ())
        }
        return Spaces(self.views, components)


@dataclass(frozen=True)
class Neighborhoods(Stored):
    """Reference rows indexed in every space."""

    spaces: Spaces
    indexes: dict[str, ClasswiseNeighbors | StreamedNeighbors]
    n_rows: int
    rows: IntArray | None = None
    """Positions of the reference rows among the rows of fit, where some of the first are not among them."""

    @classmethod
    def of(
        cls,
        spaces: Spaces,
        data: FitData,
        *,
        with_validation: bool,
        search: Any,
        rows_of_fit: IntArray | None = None,
        **settings: Any,
    ) -> "Neighborhoods":
        """Index training rows, followed by different validation rows if wanted."""
        streamed = data.streamed
        parts: tuple[Any, ...] = (data.X,) if streamed is None else streamed.segments
        codes = data.codes if streamed is None else streamed.codes
        if with_validation and not (data.shared or data.is_separate):
            parts, codes = (*parts, data.X_val), np.concatenate([codes, data.codes_val])
        rows: Any = parts if streamed is not None else parts[0] if len(parts) == 1 else np.concatenate(parts)
        indexes = {}
        for name in spaces.names:
            metric = search.metric if name in spaces.views else "euclidean"
            index = index_for(search, metric=metric, **settings)
            given: dict[str, Any] = {"classes": np.arange(data.n_classes)}
            if isinstance(search, Streamed):
                components = None if name in spaces.views else spaces.components[view_of(name)]
                indexes[name] = index.fit(rows, codes, components=components, **given)
            else:
                indexes[name] = index.fit(spaces.map(name, rows), codes, **given)
        return cls(spaces, indexes, len(codes), rows_of_fit)

    @property
    def distances_per_row(self) -> int:
        """Distances that a search finds for each row and class."""
        return sum(index.n_neighbors for index in self.indexes.values())

    def find(self, X: FloatArray, exclude: IntArray | None = None) -> dict[str, Neighbors]:
        """The nearest rows of each class in every space; `exclude` has the id of each row among these, or -1."""
        return {
            name: Neighbors(*index.kneighbors(self.spaces.map(name, X), exclude=exclude))
            for name, index in self.indexes.items()
        }

    def find_in(
        self, name: str, X: FloatArray, n_neighbors: int | None = None
    ) -> tuple[FloatArray, IntArray]:
        """The nearest rows of each class in one space, by their positions in fit."""
        distances, ids = self.indexes[name].kneighbors(self.spaces.map(name, X), n_neighbors)
        return distances, self.positions(ids)

    def positions(self, ids: IntArray) -> IntArray:
        """Positions in fit of reference rows; -1 stays."""
        return ids if self.rows is None else np.where(ids < 0, -1, self.rows[ids])

    def ids(self, positions: IntArray | None) -> IntArray | None:
        """Ids of rows of fit, given by position; None if none of them is indexed."""
        if positions is None or (positions < 0).all():
            return None
        if self.rows is None:
            return np.where(positions < self.n_rows, positions, -1)
        ids = np.full(int(max(self.rows.max(), positions.max())) + 1, -1)
        ids[self.rows] = np.arange(self.n_rows)
        return np.where(positions < 0, -1, ids[positions])


# Up to this size a group is skipped among some more neighbors; a larger one is left out of an index of its own.
SMALL_GROUP = 32


class UngroupedNeighbors(Stored):
    """Search of the kept rows by class; rows do not find their own group."""

    def __init__(
        self, X: FloatArray, labels: Labels, keep: BoolArray, *, n_neighbors: int, n_jobs: int | None
    ) -> None:
        self.X, self.codes, self.groups = X, labels.codes, labels.groups
        self.kept = np.flatnonzero(with_scarce_classes(keep, labels))
        self.n_classes, self.n_neighbors, self.n_jobs = labels.n_classes, n_neighbors, n_jobs
        self.index = self._index(self.kept)

    def of_new_rows(self, X: FloatArray) -> Neighbors:
        """The nearest of rows without a group."""
        distances, found = self.index.kneighbors(X)
        return Neighbors(distances, np.where(found < 0, -1, self.kept[found]))

    def of_own_rows(self) -> Neighbors:
        """The nearest of each row, padded with (inf, -1)."""
        sizes = np.bincount(self.groups)[self.groups]
        if (sizes == 1).all():
            return Neighbors(*self._skipping_groups(np.arange(len(self.X)), 0))
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
        return Neighbors(distances, rows)

    def _index(self, rows: IntArray) -> ClasswiseNeighbors:
        index = ClasswiseNeighbors(self.n_neighbors, n_jobs=self.n_jobs)
        return index.fit(self.X[rows], self.codes[rows], classes=np.arange(self.n_classes))

    def _skipping_groups(self, chosen: IntArray, spare: int) -> tuple[FloatArray, IntArray]:
        """Neighbors of rows whose groups have at most `spare` other rows."""
        ids = np.full(len(self.X), -1)
        ids[self.kept] = np.arange(len(self.kept))
        distances, found = self.index.kneighbors(
            self.X[chosen], self.n_neighbors + spare, exclude=ids[chosen]
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


def with_scarce_classes(keep: BoolArray, labels: Labels) -> BoolArray:
    """The rows to keep, and all rows of classes that would keep fewer than two."""
    scarce = np.bincount(labels.codes[keep], minlength=labels.n_classes) < 2
    return np.asarray(keep | scarce[labels.codes])


# A map is learned for each fold and pass: a rough one, by fewer and longer steps, finds as many wrong labels.
N_STEPS, LEARNING_RATE = 40, 0.06


class LearnedNeighbors(Stored):
    """The kept rows by class in learned maps, a map for each fold."""

    def __init__(
        self,
        X: FloatArray,
        labels: Labels,
        keep: BoolArray,
        *,
        seed: int,
        n_neighbors: int,
        n_jobs: int | None,
    ) -> None:
        codes, n_classes = labels.codes, labels.n_classes
        kept = with_scarce_classes(keep, labels)
        shape = (len(X), n_classes, n_neighbors)
        self.distances, self.rows = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
        self.map: FloatArray | None = None
        renumbered = by_appearance(codes)
        for others, fold in fold_splits(labels.folds):
            train = others[kept[others]]
            if len(np.unique(codes[train])) < 2:
                continue  # nothing to separate
            components = learn_metric(
                X[train], renumbered[train], n_steps=N_STEPS, learning_rate=LEARNING_RATE, random_state=seed
            )
            index = ClasswiseNeighbors(n_neighbors, n_jobs=n_jobs)
            index.fit(map_rows(X[train], components), codes[train], classes=np.arange(n_classes))
            self.distances[fold], found = index.kneighbors(map_rows(X[fold], components))
            self.rows[fold] = np.where(found < 0, -1, train[found])
            if self.map is None:
                self.map, self.index, self.train = components, index, train

    def of_own_rows(self) -> Neighbors:
        """The nearest of each row, padded with (inf, -1)."""
        return Neighbors(self.distances, self.rows)

    def of_new_rows(self, X: FloatArray) -> Neighbors:
        """The nearest of new rows, in the map of the first fold."""
        if self.map is None:
            shape = (len(X), *self.rows.shape[1:])
            return Neighbors(np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64))
        distances, found = self.index.kneighbors(map_rows(X, self.map))
        return Neighbors(distances, np.where(found < 0, -1, self.train[found]))

    def _saved_state(self) -> dict[str, object]:
        # Neighbors of the rows of fit are no longer needed; new rows need only their number per class.
        return vars(self) | {"distances": self.distances[:0], "rows": self.rows[:0]}


class LabelNeighborhoods(Stored):
    """Search of the kept rows by class in each view; rows do not find their own group."""

    def __init__(
        self,
        X: FloatArray,
        views: Mapping[str, int],
        labels: Labels,
        keep: BoolArray,
        *,
        n_neighbors: int,
        learned_metric: bool,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        for view in views:
            if view.endswith(LEARNED):
                raise InvalidInputError(
                    f"A view cannot be called {view!r}, because the learned metric of another could have this name.\n"
                    "Hint: give it another name."
                )
        self.spaces = Spaces(dict(views))
        size: dict[str, Any] = {"n_neighbors": n_neighbors, "n_jobs": n_jobs}
        parts = {view: self.spaces.map(view, X) for view in views}
        self.by_space: dict[str, UngroupedNeighbors | LearnedNeighbors] = {
            view: UngroupedNeighbors(part, labels, keep, **size) for view, part in parts.items()
        }
        if learned_metric:
            self.by_space |= {
                learned(view): LearnedNeighbors(part, labels, keep, seed=seed, **size)
                for view, part in parts.items()
            }

    def of_own_rows(self) -> dict[str, Neighbors]:
        """The nearest of each row in each space; (inf, -1) where there are fewer."""
        found = {}
        for name, neighbors in self.by_space.items():
            found[name] = neighbors.of_own_rows()
            if name in self.spaces.views:
                advance()
        return found

    def of_new_rows(self, X: FloatArray) -> dict[str, Neighbors]:
        """The nearest of rows without a group."""
        parts = {view: self.spaces.map(view, X) for view in self.spaces.views}
        return {
            name: neighbors.of_new_rows(parts[name if name in parts else view_of(name)])
            for name, neighbors in self.by_space.items()
        }

    @property
    def vectors(self) -> FloatArray:
        """All views side by side, as they were passed."""
        found = [self.by_space[view] for view in self.spaces.views]
        parts = [neighbors.X for neighbors in found if isinstance(neighbors, UngroupedNeighbors)]
        return parts[0] if len(parts) == 1 else np.hstack(parts)
