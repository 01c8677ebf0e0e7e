"""Baselines from distances: Trust Score and Mahalanobis."""

import numpy as np
from sklearn.covariance import empirical_covariance, ledoit_wolf, shrunk_covariance

from neighboragg._core.checks import check_choice, check_integer, check_real
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods._method import TrustMethod
from neighboragg.search import ClasswiseNeighbors, dense_rows

FILTERS = ("none", "density", "uncertainty")


class TrustScore(TrustMethod):
    """Ratio of the distance to the nearest other class and the distance to the predicted class.

    Parameters
    ----------
    n_neighbors : int, default=2
        Rank of the neighbor in each class whose distance is used: 1 is the nearest row, as in the paper; 2 is the
        second nearest, as in the code of its authors. A class with fewer rows uses the farthest of them.
    filtering : {"none", "density", "uncertainty"}, default="none"
        Reference rows to drop first: "density", the share `alpha` of each class with the largest distance to
        their `filter_neighbors`-th neighbor in the class; "uncertainty", the share `alpha` of all rows whose
        `filter_neighbors` nearest rows agree least with their label.
    alpha : float, default=0.0
        Share to drop, in [0, 1).
    filter_neighbors : int, default=10
        Number of neighbors that the filters use.
    n_jobs : int, default=None
        Number of threads of the search.

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

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray) -> FloatArray:
        found = positions_in(self.reference_, exclude)
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
    """Position of each of `rows` in the sorted `reference`; -1 if absent."""
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


# Spread below this share of the largest value is rounding error.
NEGLIGIBLE = 1e-12
# Smallest variance along any axis, as a share of the mean variance; it makes a singular covariance invertible.
MIN_VARIANCE = 1e-10
# Coordinates beyond this, in units of the largest within-class deviation, would overflow when squared.
FARTHEST = 1e100


class Mahalanobis(TrustMethod):
    """Nearness to the mean of the class, measured by the covariance within classes.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        Share of the spherical covariance, in [0, 1]: 0 is the covariance as it was found, 1 the Euclidean distance.
        "auto" is Ledoit and Wolf's.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_count_ : ndarray of shape (n_classes,)
        Training rows of each class.
    location_ : ndarray of shape (n_features,)
        Mean of the training rows.
    scale_ : float
        Largest deviation of a training row from its class mean, by which centered rows are divided.
    whitening_ : ndarray of shape (n_features, n_features)
        Map of the centered and scaled rows under which Mahalanobis distances are Euclidean.
    means_ : ndarray of shape (n_classes, n_features)
        Mapped class means; 0 for a class without rows.
    shrinkage_ : float
        Share of the spherical covariance as used; 1 if no class has any spread.

    Notes
    -----
    Needs training rows; uses neither validation rows nor probabilities except for the predicted class. With
    d_c² = (x − μ_c)' Σ⁻¹ (x − μ_c), Σ the shrunk covariance of x − μ_y over all training rows,
    trust_c = 1 / (1 + d_c² / n_features): the order of the published score −d_c², but in [0, 1] and without
    underflow. A class without training rows is infinitely far: trust 0. Classes are modeled as Gaussian clouds of
    one shape; the cost grows with the cube of the number of features.

    References
    ----------
    Lee, Lee, Lee and Shin, "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial
    Attacks", NeurIPS 2018.

    Ledoit and Wolf, "A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices", Journal of
    Multivariate Analysis, 2004.

    Examples
    --------
    >>> from neighboragg.methods import Mahalanobis
    >>> method = Mahalanobis().fit([[0.0], [2.0], [8.0], [10.0]], [0, 0, 1, 1], proba_val=[[0.5, 0.5]] * 4)
    >>> method.predict_trust([[2.0]], [[0.5, 0.5]])
    array([[0.5 , 0.02]])
    """

    def __init__(self, *, shrinkage: str | float = "auto") -> None:
        self.shrinkage = shrinkage

    def _fit(self, data: FitData) -> None:
        share = self._check_shrinkage()
        rows = data.X.astype(np.float64)
        means, self.class_count_ = class_means(rows, data.codes, data.n_classes)
        self.location_ = rows.mean(axis=0)
        within = rows - means[data.codes]
        self.scale_ = common_scale(within, rows - self.location_, rows)
        self.whitening_, self.shrinkage_ = whitening(within / self.scale_, share)
        self.means_ = np.where(self.class_count_[:, None] > 0, self._whitened(means), 0.0)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return 1.0 / (1.0 + self._squared_distances(X) / X.shape[1])

    def _squared_distances(self, X: FloatArray) -> FloatArray:
        """Squared distance to every class, infinite to one without training rows."""
        rows = self._whitened(X.astype(np.float64))
        squared = np.full((len(X), len(self.means_)), np.inf)
        for c in np.flatnonzero(self.class_count_):
            difference = rows - self.means_[c]
            squared[:, c] = np.einsum("nd,nd->n", difference, difference)
        return squared

    def _check_shrinkage(self) -> float | None:
        owner = type(self).__name__
        if isinstance(self.shrinkage, str):
            check_choice(self.shrinkage, "shrinkage", owner, choices=("auto",))
            return None
        return check_real(self.shrinkage, "shrinkage", owner, low=0, high=1, closed="both")

    def _whitened(self, rows: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            scaled = (rows - self.location_) / self.scale_
        return np.clip(scaled, -FARTHEST, FARTHEST) @ self.whitening_


def class_means(rows: FloatArray, codes: IntArray, n_classes: int) -> tuple[FloatArray, IntArray]:
    """Mean of every class (0 without rows), and its number of rows."""
    counts = np.bincount(codes, minlength=n_classes)
    means = np.zeros((n_classes, rows.shape[1]))
    np.add.at(means, codes, rows / counts[codes, None])
    return means, counts


def common_scale(within: FloatArray, around: FloatArray, rows: FloatArray) -> float:
    """Largest deviation within a class; without any, that from the common mean; without any, 1."""
    rounding = NEGLIGIBLE * float(np.abs(rows).max())
    for deviations in (within, around):
        if (largest := float(np.abs(deviations).max())) > rounding:
            return largest
    return 1.0


def whitening(within: FloatArray, share: float | None) -> tuple[FloatArray, float]:
    """Map under which the shrunk covariance of scaled deviations is the identity, and the shrinkage."""
    if np.abs(within).max() < 0.5:
        # Without any spread within classes, every direction counts alike.
        return np.eye(within.shape[1]), 1.0
    if share is None:
        covariance, shrinkage = ledoit_wolf(within, assume_centered=True)
    else:
        covariance, shrinkage = (
            shrunk_covariance(empirical_covariance(within, assume_centered=True), share),
            share,
        )
    variances, axes = np.linalg.eigh(covariance)
    variances = np.maximum(variances, MIN_VARIANCE * variances.mean())
    return axes / np.sqrt(variances), float(shrinkage)
