"""Votes of the nearest training rows."""

import numpy as np

from neighboragg._core.checks import check_choice, check_integer
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods import TrustMethod
from neighboragg.search import ClasswiseNeighbors, Exact

__all__ = ["KNNVote"]

WEIGHTS = ("distance", "uniform")


class KNNVote(TrustMethod):
    """Share of the class among the nearest training rows of any class.

    Parameters
    ----------
    n_neighbors : int, default=10
        Rows that vote; all training rows if there are fewer.
    weights : {"uniform", "distance"}, default="uniform"
        "distance": votes weigh 1 / distance; where rows at distance 0 exist, only they vote.
    metric : {"euclidean", "cosine"}, default="euclidean"
    n_jobs : int, default=None
        Threads of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    codes_ : ndarray of shape (n_train,)
        Class of each training row, as a position in `classes_`.

    Notes
    -----
    Needs training rows; uses neither validation rows nor probabilities except for the predicted class. Rows of the
    trust add up to 1. Rows that tie for the last vote enter in the order of the training rows. Uniform votes take
    only `n_neighbors` + 1 values, so that trust ties often.

    References
    ----------
    Cover and Hart, "Nearest Neighbor Pattern Classification", IEEE Transactions on Information Theory, 1967.

    Papernot and McDaniel, "Deep k-Nearest Neighbors: Toward Confident, Interpretable and Robust Deep Learning",
    arXiv 2018.

    Examples
    --------
    >>> from neighboragg.methods import KNNVote
    >>> method = KNNVote(n_neighbors=4).fit(
    ...     [[0.0], [1.0], [2.0], [3.0], [9.0]], [0, 0, 0, 1, 1], proba_val=[[0.5, 0.5]] * 5)
    >>> method.predict_trust([[1.5]], [[0.2, 0.8]])
    array([[0.75, 0.25]])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        weights: str = "uniform",
        metric: str = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.n_jobs = n_jobs

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        k = check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        check_choice(self.weights, "weights", owner, choices=WEIGHTS)
        self.codes_ = data.codes
        # Neighbors within one class that holds every row are the neighbors among all rows.
        self.index_ = ClasswiseNeighbors(
            min(k, len(data.X)), search=Exact(self.metric), n_jobs=self.n_jobs
        ).fit(data.X, np.zeros(len(data.X), dtype=np.intp))

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return self._votes(X, proba.shape[1], None)

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray) -> FloatArray:
        return self._votes(X, proba.shape[1], np.where(exclude < len(self.codes_), exclude, -1))

    def _votes(self, X: FloatArray, n_classes: int, exclude: IntArray | None) -> FloatArray:
        distances, indices = (found[:, 0] for found in self.index_.kneighbors(X, exclude=exclude))
        exists = indices >= 0
        votes = exists.astype(np.float64)
        if self.weights == "distance":
            nearest = distances[:, :1]
            # Relative to the nearest, so that tiny distances do not overflow.
            relative = np.divide(
                nearest, distances, out=np.zeros_like(distances), where=exists & (distances > 0)
            )
            votes = np.where(nearest == 0, distances == 0, relative)
        n = len(X)
        ballot = n_classes * np.arange(n)[:, None] + self.codes_[indices]
        counts = np.bincount(ballot.ravel(), weights=votes.ravel(), minlength=n * n_classes)
        total = votes.sum(axis=1, keepdims=True)
        # A row without any other has no votes, and every class is as good.
        return np.where(
            total > 0, counts.reshape(n, n_classes) / np.where(total > 0, total, 1.0), 1 / n_classes
        )
