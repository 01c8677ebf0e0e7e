"""Votes of the nearest training rows."""

import numpy as np

from neighboragg._typing import FloatArray
from neighboragg._validation import check_choice, check_integer
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.neighbors import ClasswiseNeighbors

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
        self.index_ = ClasswiseNeighbors(min(k, len(data.X)), metric=self.metric, n_jobs=self.n_jobs).fit(
            data.X, np.zeros(len(data.X), dtype=np.intp)
        )

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        distances, indices = (found[:, 0] for found in self.index_.kneighbors(X))
        votes = np.ones_like(distances)
        if self.weights == "distance":
            nearest = distances[:, :1]
            # Relative to the nearest, so that tiny distances do not overflow.
            votes = np.where(nearest == 0, distances == 0, nearest / np.where(distances == 0, 1.0, distances))
        n, n_classes = proba.shape
        ballot = n_classes * np.arange(n)[:, None] + self.codes_[indices]
        counts = np.bincount(ballot.ravel(), weights=votes.ravel(), minlength=n * n_classes)
        return counts.reshape(n, n_classes) / votes.sum(axis=1, keepdims=True)
