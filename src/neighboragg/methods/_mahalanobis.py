"""Mahalanobis distance to the class means, with one covariance for all classes."""

import numpy as np
from sklearn.covariance import empirical_covariance, ledoit_wolf, shrunk_covariance

from neighboragg._typing import FloatArray, IntArray
from neighboragg._validation import check_choice, check_real
from neighboragg.methods._base import FitData, TrustMethod

__all__ = ["Mahalanobis"]

# Spread below this share of the largest value is rounding error.
NEGLIGIBLE = 1e-12
# Of the mean variance: least variance along any axis, so that a singular covariance can be inverted.
LEAST_VARIANCE = 1e-10
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
    underflow. A class without training rows is infinitely far: trust 0. Classes are taken for Gaussian clouds of
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
    """Mean of every class, 0 where it has no rows, and the number of its rows."""
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
    """Map under which the shrunk covariance of scaled deviations is the identity, and the shrinkage.

    Without a `share` it is Ledoit and Wolf's.
    """
    if np.abs(within).max() < 0.5:
        # Not the spread within classes set the scale: there is none, and every direction counts alike.
        return np.eye(within.shape[1]), 1.0
    if share is None:
        covariance, shrinkage = ledoit_wolf(within, assume_centered=True)
    else:
        covariance, shrinkage = (
            shrunk_covariance(empirical_covariance(within, assume_centered=True), share),
            share,
        )
    variances, axes = np.linalg.eigh(covariance)
    variances = np.maximum(variances, LEAST_VARIANCE * variances.mean())
    return axes / np.sqrt(variances), float(shrinkage)
