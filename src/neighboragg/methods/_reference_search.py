"""Reference rows, in memory or not, and the search for neighbors among them in every metric."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from neighboragg._typing import ArrayLike, FloatArray, IntArray
from neighboragg._validation import check_labels, check_proba
from neighboragg._views import FEATURES, columns_of, learned, stack_views, view_of
from neighboragg.aggregators import Aggregator
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.methods._streamed_rows import Sample, sample_of, stream_rows
from neighboragg.neighbors import (
    Blocks,
    ChainedBlocks,
    ClasswiseNeighbors,
    LinearBlocks,
    StreamedNeighbors,
    as_blocks,
    gather,
    map_rows,
)

__all__ = ["ReferenceSearch"]

GATHERED_ROWS = 4096


class ReferenceSearch(TrustMethod):
    """The half of NeighborAgg that has reference rows and finds neighbors among them."""

    metric: str
    memory: int | str | None
    n_jobs: int | None
    device: Any
    algorithm: str
    recall: float
    random_state: Any
    aggregator_: Aggregator
    components_: dict[str, FloatArray]
    indexes_: dict[str, Any]
    reference_: IntArray
    views_: dict[str, int]
    sample_: Sample | None = None

    def training_sample(self, y: ArrayLike) -> IntArray:
        """Which training rows the learned parts are shown where rows are read in blocks, `memory` being given.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels of all training rows.

        Returns
        -------
        rows : ndarray of int
            Positions, ascending. If there are no validation rows, `fit` takes the out-of-fold probabilities of these
            instead of those of all rows.
        """
        codes = np.unique(check_labels(y, "y", type(self).__name__), return_inverse=True)[1]
        return sample_of(codes, self.random_state).rows

    def _check_fit(
        self,
        X: Any,
        y: ArrayLike,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        proba_val: ArrayLike,
        classes: ArrayLike | None,
    ) -> FitData:
        self.sample_ = None
        if self.memory is None:
            return super()._check_fit(X, y, X_val, y_val, proba_val, classes)
        owner = type(self).__name__
        if self.device is not None:
            raise InvalidParameterError(
                f"The 'device' parameter of {owner} is for reference rows in memory, so not with `memory`. "
                f"Got {self.device!r}.\nHint: leave one of the two out."
            )
        if self.algorithm != "exact":
            raise InvalidParameterError(
                f"The 'algorithm' parameter of {owner} is for reference rows in memory, so not with `memory`, whose "
                f"search is exact. Got {self.algorithm!r}.\nHint: leave one of the two out."
            )
        if isinstance(X, Mapping):
            raise InvalidInputError(
                f"Several views of rows are kept in memory by {owner}, so not with `memory`."
            )
        streamed = stream_rows(X, y, classes, self.random_state, owner)
        rows = streamed.sample.rows
        if X_val is None and y_val is None and np.shape(proba_val)[:1] != rows.shape:
            proba_val = check_proba(
                proba_val, "proba_val", owner, n_classes=len(streamed.classes), n_rows=len(streamed.codes)
            )[rows]
        sampled = gather(streamed.blocks, rows, GATHERED_ROWS)
        self.sample_ = streamed.sample
        data = super()._check_fit(
            sampled, streamed.classes[streamed.codes[rows]], X_val, y_val, proba_val, streamed.classes
        )
        return replace(data, streamed=streamed)

    def _check_vectors(self, X: Any, name: str, *, n_features: int | None = None) -> FloatArray:
        if not isinstance(X, Mapping):
            rows = super()._check_vectors(X, name, n_features=n_features)
            if n_features is None:
                self.views_ = {FEATURES: rows.shape[1]}
            return rows
        owner = type(self).__name__
        if n_features is None:
            rows, self.views_ = stack_views(X, name, owner)
            return rows
        # In the order of fit, whatever the order of the mapping.
        given = {view: X[view] for view in self.views_ if view in X}
        rows, widths = stack_views(given if len(given) == len(X) else X, name, owner)
        if widths != self.views_ or len(given) != len(X):
            raise InvalidInputError(
                f"{name} passed to {owner} has the views {widths}, but fit had {self.views_} (with the number of "
                "features of each).\nHint: pass the same views."
            )
        return rows

    def _index_reference(self, data: FitData, k: int) -> IntArray:
        """Index the reference rows in every metric; return the reference id of each validation row, or -1."""
        X: Any
        if data.streamed is None:
            X, codes, ids = data.X, data.codes, np.arange(len(data.X))
        else:
            X, codes, ids = data.streamed.blocks, data.streamed.codes, data.streamed.sample.rows
        n_train, n_val = len(codes), len(data.X_val)
        own = np.full(n_val, -1)
        if data.shared:
            own = ids
        elif self.aggregator_.indexes_validation:
            X = _followed_by(X, data.X_val)
            codes = np.concatenate([codes, data.codes_val])
            own = n_train + np.arange(n_val)
        self.reference_ = np.arange(len(codes))
        names = [
            name
            for view in self.views_
            for name in (view, *([learned(view)] if view in self.components_ else []))
        ]
        classes = np.arange(data.n_classes)
        self.indexes_ = {
            name: self._index_for(name, k).fit(self._mapped(name, X), codes, classes=classes)
            for name in names
        }
        return own

    def _index_for(self, name: str, k: int) -> Any:
        metric = self.metric if name in self.views_ else "euclidean"
        if self.memory is None:
            return ClasswiseNeighbors(
                k,
                metric=metric,
                n_jobs=self.n_jobs,
                device=self.device,
                algorithm=self.algorithm,
                recall=self.recall,
            )
        return StreamedNeighbors(k, metric=metric, memory=self.memory, n_jobs=self.n_jobs)

    def _mapped(self, name: str, X: Any) -> Any:
        """Rows in the metric of an index."""
        view = name if name in self.views_ else view_of(name)
        rows = X if len(self.views_) == 1 else X[:, columns_of(self.views_)[view]]
        if name == view:
            return rows
        components = self.components_[view]
        return LinearBlocks(rows, components) if isinstance(rows, Blocks) else map_rows(rows, components)

    def _leading(self) -> tuple[str, ...]:
        """The metric of each view that is expected to be best: the learned one, where there is one."""
        return tuple(learned(view) if view in self.components_ else view for view in self.views_)

    def _parts(self, n: int, n_elements: int) -> Iterator[slice]:
        """Consecutive slices of as many rows as have so many distances."""
        per_row = sum(index.n_neighbors for index in self.indexes_.values()) * len(self.classes_)
        step = max(1, n_elements // per_row)
        return (slice(start, start + step) for start in range(0, n, step))

    def _search(self, X: FloatArray, exclude: IntArray | None) -> dict[str, FloatArray]:
        return {
            name: index.kneighbors(self._mapped(name, X), exclude=exclude)[0]
            for name, index in self.indexes_.items()
        }

    def _reference_ids(self, positions: IntArray | None) -> IntArray | None:
        """Ids in the indexes of rows given by their position in fit; None if none of them is indexed."""
        if positions is None or (positions < 0).all():
            return None
        ids = np.full(int(max(self.reference_.max(), positions.max())) + 1, -1)
        ids[self.reference_] = np.arange(len(self.reference_))
        return np.where(positions < 0, -1, ids[positions])

    def _seen(self, positions: IntArray | None) -> IntArray | None:
        """Positions in the rows of fit as those in what the second opinions were fitted on."""
        return positions if positions is None or self.sample_ is None else self.sample_.places(positions)


def _followed_by(rows: Any, more: FloatArray) -> Any:
    return (
        ChainedBlocks([rows, as_blocks(more)]) if isinstance(rows, Blocks) else np.concatenate([rows, more])
    )
