"""The contract of every class-wise search, and how recall is measured."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import rel_entr

from neighboragg._core.checks import (
    check_choice,
    check_fitted,
    check_integer,
    check_labels,
    check_rows,
    check_same_length,
    encode_labels,
)
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.search._blocks import Blocks

CONFIDENCE_TAIL = 0.025  # on either side: an interval of 95%
HALVINGS = 60


def shares_found(found: FloatArray, exact: FloatArray) -> FloatArray:
    """Of the exact neighbors of each query, the share that was found; a row as near as the last of them is one."""
    return np.mean(found <= exact[:, -1:], axis=1)


def recall_interval(shares: FloatArray) -> tuple[float, float]:
    """Where the mean share over all queries is, given those of a sample: Hoeffding's limits, without assumptions."""
    mean = float(np.mean(shares))
    enough = np.log(1 / CONFIDENCE_TAIL) / len(shares)
    return _farthest(mean, 0.0, enough), _farthest(mean, 1.0, enough)


def _farthest(mean: float, end: float, enough: float) -> float:
    """The number toward `end` at which KL(mean, number) is enough, by halving."""
    near, far = mean, end
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        if rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) < enough:
            near = middle
        else:
            far = middle
    return near


METRICS = ("cosine", "euclidean")


class ClasswiseSearch(ABC):
    """The half of an index that talks to its users; the search itself is left to subclasses."""

    n_neighbors: int
    metric: str
    classes_: Array
    n_features_in_: int
    n_samples_fit_: int

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        *,
        exclude: ArrayLike | None = None,
    ) -> tuple[FloatArray, IntArray]:
        """Find the nearest reference rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), default=None
            Query rows. None queries every reference row, each leaving itself out.
        n_neighbors : int, default=None
            Neighbors per class; defaults to the constructor's.
        exclude : array-like of shape (n_queries,), default=None
            Id of the reference row that each query is and must not find; -1 for none.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ascending in the last axis; inf where a class has fewer rows.
        indices : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ids of the reference rows (their position in the rows fitted); -1 where a class has fewer.
        """
        check_fitted(self, "n_samples_fit_")
        owner = type(self).__name__
        k = check_integer(
            self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors", owner, minimum=1
        )
        if X is None:
            return self._neighbors_of_reference(k)
        queries = check_rows(X, "X", owner, n_features=self.n_features_in_)
        excluded = None if exclude is None else self._check_exclude(exclude, len(queries))
        return self._neighbors_of(queries, k, excluded)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_samples_fit_")

    @abstractmethod
    def _neighbors_of(
        self, queries: FloatArray, k: int, excluded: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        """Distances and ids, without the row of each query in `excluded`, if any."""

    @abstractmethod
    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        """Distances and ids for every reference row, each leaving itself out."""

    def _check_params(self) -> None:
        owner = type(self).__name__
        check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        check_choice(self.metric, "metric", owner, choices=METRICS)

    def _encode(self, rows: FloatArray | Blocks, y: ArrayLike, classes: ArrayLike | None) -> IntArray:
        """Class of each row as a position in `classes_`, which it sets."""
        owner = type(self).__name__
        labels = check_labels(y, "y", owner)
        check_same_length(rows, "X", labels, "y", owner)
        if not len(labels):
            raise InvalidInputError(f"X passed to {owner} has no rows; at least one is needed to search.")
        known = np.unique(labels if classes is None else np.asarray(classes))
        codes = encode_labels(labels, known, "y", owner)
        self.classes_ = known
        return codes

    def _check_exclude(self, exclude: ArrayLike, n: int) -> IntArray:
        ids = np.asarray(exclude)
        if not ids.size:
            ids = ids.astype(np.int64)
        wrong = f"shape {ids.shape}" if ids.shape != (n,) else ""
        if ids.dtype.kind not in "iu":
            wrong = wrong or f"dtype {ids.dtype}"
        elif not wrong and (outside := (ids < -1) | (ids >= self.n_samples_fit_)).any():
            wrong = f"the id {ids[outside][0]}"
        if wrong:
            raise InvalidInputError(
                f"exclude passed to {type(self).__name__} must hold one row id below {self.n_samples_fit_}, or -1, "
                f"for each of the {n} queries. Got {wrong}."
            )
        return ids.astype(np.int64)
