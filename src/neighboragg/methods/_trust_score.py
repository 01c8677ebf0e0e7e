"""Trust Score: how much nearer the predicted class is than any other."""

import numpy as np

from neighboragg._typing import BoolArray, FloatArray, IntArray
from neighboragg._validation import check_choice, check_integer, check_real
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.neighbors import ClasswiseNeighbors, dense_rows

__all__ = ["TrustScore"]

FILTERS = ("none", "density", "uncertainty")


class TrustScore(TrustMethod):
    """Ratio of the distance to the nearest other class and the distance to the predicted class.

    Parameters
    ----------
    n_neighbors : int, default=2
        Which neighbor in each class the distance is taken to: 1 is the nearest row, as the paper writes; 2 the
        second nearest, as its authors' code does. A class with fewer rows is as far as the farthest of them.
    filtering : {"none", "density", "uncertainty"}, default="none"
        Reference rows to drop first: "density", the share `alpha` of each class with the largest distance to
        their `filter_neighbors`-th neighbor in the class; "uncertainty", the share `alpha` of all rows whose
        `filter_neighbors` nearest rows agree least with their label.
    alpha : float, default=0.0
        Share to drop, in [0, 1).
    filter_neighbors : int, default=10
        Neighbors looked at by the filters.
    n_jobs : int, default=None
        Threads of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    reference_ : ndarray
        Positions of the training rows kept by the filter.

    Notes
    -----
    With d_c the distance to the `n_neighbors`-th nearest training row of class c and d_other the smallest such
    distance to another class, the paper's score is s = d_other / d_c. Here trust = d_other / (d_other + d_c)
    = s / (1 + s): the same order, but bounded, and ½ rather than 0/0 on a row that is duplicated in two classes.
    Needs training rows; uses neither validation rows nor probabilities except for the predicted class.

    Labels that are often wrong need a higher rank: one stray row then no longer makes a class look near.
    :class:`Tuned` chooses the rank on validation rows.

    References
    ----------
    Jiang, Kim, Guan and Gupta, "To Trust Or Not To Trust A Classifier", NeurIPS 2018.

    Examples
    --------
    >>> from neighboragg.methods import TrustScore
    >>> method = TrustScore().fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.score_samples([[0.25]], [[0.3, 0.7]])
    array([0.25])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 2,
        filtering: str = "none",
        alpha: float = 0.0,
        filter_neighbors: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.filtering = filtering
        self.alpha = alpha
        self.filter_neighbors = filter_neighbors
        self.n_jobs = n_jobs

    def _fit(self, data: FitData) -> None:
        rank = check_integer(self.n_neighbors, "n_neighbors", type(self).__name__, minimum=1)
        keep = self._kept(data)
        self.reference_ = np.flatnonzero(keep)
        self.index_ = ClasswiseNeighbors(rank, n_jobs=self.n_jobs).fit(
            data.X[keep], data.codes[keep], classes=np.arange(data.n_classes)
        )

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return separation(farthest_found(self.index_.kneighbors(X)[0]))

    def _trust_without(self, X: FloatArray, proba: FloatArray, left_out: IntArray) -> FloatArray:
        found = positions_in(self.reference_, left_out)
        return separation(farthest_found(self.index_.kneighbors(X, exclude=found)[0]))

    def _kept(self, data: FitData) -> BoolArray:
        owner = type(self).__name__
        check_choice(self.filtering, "filtering", owner, choices=FILTERS)
        share = check_real(self.alpha, "alpha", owner, low=0, high=1, closed="left")
        k = check_integer(self.filter_neighbors, "filter_neighbors", owner, minimum=1)
        if self.filtering == "density":
            return dense_rows(data.X, data.codes, share=share, n_neighbors=k, n_jobs=self.n_jobs)
        keep = np.ones(len(data.X), dtype=bool)
        if self.filtering == "uncertainty":
            agreement = neighbor_agreement(data, k, self.n_jobs)
            keep[np.argsort(agreement, kind="stable")[: int(share * len(keep))]] = False
        return keep


def positions_in(reference: IntArray, rows: IntArray) -> IntArray:
    """Where each of `rows` stands in the sorted `reference`; -1 if it does not."""
    at = np.minimum(np.searchsorted(reference, rows), len(reference) - 1)
    return np.where(reference[at] == rows, at, -1)


def farthest_found(distances: FloatArray) -> FloatArray:
    """Distance to the last neighbor that exists in each class, inf without any: (n, C, K) to (n, C)."""
    last = np.maximum(np.isfinite(distances).sum(axis=2) - 1, 0)
    return np.take_along_axis(distances, last[:, :, None], axis=2)[:, :, 0]


def separation(nearest: FloatArray) -> FloatArray:
    """d_other / (d_other + d_c) from the distance to each class, shape (n, C)."""
    n, n_classes = nearest.shape
    if n_classes == 1:
        return np.ones((n, 1))
    best = np.partition(nearest, 1, axis=1)[:, :2]
    # Where the class itself is the nearest, the nearest other class is the runner-up.
    other = np.where(np.arange(n_classes) == nearest.argmin(axis=1)[:, None], best[:, 1:], best[:, :1])
    with np.errstate(invalid="ignore"):
        share = other / (other + nearest)
    share = np.where(np.isinf(nearest), 0.0, share)  # a class without rows is infinitely far
    share = np.where(np.isinf(other) & np.isfinite(nearest), 1.0, share)
    return np.where(np.isnan(share), 0.5, share)


def neighbor_agreement(data: FitData, n_neighbors: int, n_jobs: int | None) -> FloatArray:
    """Share of each training row's nearest other rows that have its label."""
    k = max(1, min(n_neighbors, len(data.X) - 1))
    index = ClasswiseNeighbors(k, n_jobs=n_jobs).fit(data.X, data.codes, classes=np.arange(data.n_classes))
    distances, _ = index.kneighbors()
    radius = np.partition(distances.reshape(len(distances), -1), k - 1, axis=1)[:, k - 1]
    within = (distances <= radius[:, None, None]).sum(axis=2)
    return within[np.arange(len(within)), data.codes] / np.maximum(within.sum(axis=1), 1)
