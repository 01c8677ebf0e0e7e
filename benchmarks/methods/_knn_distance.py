"""Distance to the k-th nearest training row."""

import numpy as np

from neighboragg._core.checks import check_integer
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods import TrustMethod
from neighboragg.search import ClasswiseNeighbors, Exact

__all__ = ["KNNDistance"]


class KNNDistance(TrustMethod):
    """How near the k-th nearest training row of any class is.

    Parameters
    ----------
    n_neighbors : int, default=50
        Which neighbor; the farthest training row if there are fewer.
    metric : {"cosine", "euclidean"}, default="cosine"
        "cosine" orders rows as the distance between embeddings of length one does, which the paper takes.
    n_jobs : int, default=None
        Threads of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs training rows, but neither labels nor probabilities. trust = 1 / (1 + d). It is the same for every class,
    so that it ranks rows, but cannot compare labels of one row. It was made to tell unfamiliar rows from familiar
    ones, not errors from right predictions.

    References
    ----------
    Sun, Ming, Zhu and Li, "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022.

    Examples
    --------
    >>> from neighboragg.methods import KNNDistance
    >>> method = KNNDistance(n_neighbors=2, metric="euclidean").fit(
    ...     [[0.0], [1.0], [9.0]], [0, 0, 1], proba_val=[[0.5, 0.5]] * 3)
    >>> method.score_samples([[0.0], [6.0]], [[0.5, 0.5]] * 2)
    array([0.5       , 0.16666667])
    """

    def __init__(self, *, n_neighbors: int = 50, metric: str = "cosine", n_jobs: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_jobs = n_jobs

    def _fit(self, data: FitData) -> None:
        k = check_integer(self.n_neighbors, "n_neighbors", type(self).__name__, minimum=1)
        # Neighbors within one class that holds every row are the neighbors among all rows.
        self.index_ = ClasswiseNeighbors(
            min(k, len(data.X)), search=Exact(self.metric), n_jobs=self.n_jobs
        ).fit(data.X, np.zeros(len(data.X), dtype=np.intp))

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return self._nearness(X, proba.shape[1], None)

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray) -> FloatArray:
        exclude = np.where(exclude < self.index_.n_samples_fit_, exclude, -1)
        return self._nearness(X, proba.shape[1], exclude)

    def _nearness(self, X: FloatArray, n_classes: int, exclude: IntArray | None) -> FloatArray:
        distances = self.index_.kneighbors(X, exclude=exclude)[0][:, 0]
        # Where the row left out was the k-th, the farthest of the others; without any other, infinitely far.
        finite = np.isfinite(distances)
        farthest = np.where(finite, distances, -1.0).max(axis=1)
        trust = np.where(farthest >= 0, 1.0 / (1.0 + np.maximum(farthest, 0.0)), 0.0)
        return np.repeat(trust[:, None], n_classes, axis=1)
