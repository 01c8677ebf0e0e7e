"""Trust Score: how much nearer the predicted class is than any other."""

import numpy as np

from neighboragg._typing import BoolArray, FloatArray
from neighboragg._validation import check_choice, check_integer, check_real
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.neighbors import ClasswiseNeighbors, dense_rows

__all__ = ["TrustScore"]

FILTERS = ("none", "density", "uncertainty")


class TrustScore(TrustMethod):
    """Ratio of the distance to the nearest other class and the distance to the predicted class.

    Parameters
    ----------
    filtering : {"none", "density", "uncertainty"}, default="none"
        Reference rows to drop first: "density", the share `alpha` of each class with the largest distance to
        their `n_neighbors`-th neighbor in the class; "uncertainty", the share `alpha` of all rows whose
        `n_neighbors` nearest rows agree least with their label.
    alpha : float, default=0.0
        Share to drop, in [0, 1).
    n_neighbors : int, default=10
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
    With d_c the distance to the nearest training row of class c and d_other the smallest distance to another
    class, the paper's score is s = d_other / d_c. Here trust = d_other / (d_other + d_c) = s / (1 + s): the
    same order, but bounded, and ½ rather than 0/0 on a row that is duplicated in two classes. Needs training
    rows; uses neither validation rows nor probabilities except for the predicted class.

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
        filtering: str = "none",
        alpha: float = 0.0,
        n_neighbors: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.filtering = filtering
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def _fit(self, data: FitData) -> None:
        keep = self._kept(data)
        self.reference_ = np.flatnonzero(keep)
        self.index_ = ClasswiseNeighbors(1, n_jobs=self.n_jobs).fit(
            data.X[keep], data.codes[keep], classes=np.arange(data.n_classes)
        )

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return separation(self.index_.kneighbors(X)[0][:, :, 0])

    def _kept(self, data: FitData) -> BoolArray:
        owner = type(self).__name__
        check_choice(self.filtering, "filtering", owner, choices=FILTERS)
        share = check_real(self.alpha, "alpha", owner, low=0, high=1, closed="left")
        k = check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        if self.filtering == "density":
            return dense_rows(data.X, data.codes, share=share, n_neighbors=k, n_jobs=self.n_jobs)
        keep = np.ones(len(data.X), dtype=bool)
        if self.filtering == "uncertainty":
            agreement = neighbor_agreement(data, k, self.n_jobs)
            keep[np.argsort(agreement, kind="stable")[: int(share * len(keep))]] = False
        return keep


def separation(nearest: FloatArray) -> FloatArray:
    """d_other / (d_other + d_c) from distances to the nearest row of each class, shape (n, C)."""
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
