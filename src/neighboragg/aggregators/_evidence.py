"""What is known about each row, and the functions that turn distances into similarities and log-evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from neighboragg._typing import Array, FloatArray

__all__ = ["Evidence", "Opinion", "fill_missing", "laplacian_similarity", "log_evidence", "nearest_distance"]


@dataclass(frozen=True)
class Opinion:
    """Another classifier's probabilities, and the floor added before their logarithm is taken."""

    proba: FloatArray
    floor: float

    def take(self, rows: Array) -> "Opinion":
        """The opinion on some of the rows."""
        return Opinion(self.proba[rows], self.floor)


@dataclass(frozen=True)
class Evidence:
    """All that an aggregator may look at, for n rows and C classes.

    Parameters
    ----------
    proba : ndarray of shape (n, C)
        The frozen classifier's probabilities.
    distances : mapping of str to ndarray of shape (n, C, K)
        For each metric, the distance to the K nearest reference rows of every class, ascending; inf where
        a class has fewer rows. The first metric is the feature space itself.
    opinions : mapping of str to Opinion
        Second opinions by name.
    """

    proba: FloatArray
    distances: Mapping[str, FloatArray]
    opinions: Mapping[str, Opinion] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.proba)

    @property
    def feature_distances(self) -> FloatArray:
        """Distances in the feature space."""
        return next(iter(self.distances.values()))


def fill_missing(distances: FloatArray, far: float) -> FloatArray:
    """Replace the distance to neighbors that do not exist, by `far` or twice the largest distance of the row.

    However far out a row is, a class without rows is never the nearest to it.
    """
    missing = np.isinf(distances)
    if not missing.any():
        return distances
    largest = np.where(missing, 0.0, distances).max(axis=(1, 2), keepdims=True)
    return np.where(missing, np.maximum(far, 2.0 * largest), distances)


def nearest_distance(distances: FloatArray) -> float:
    """Median distance to the nearest neighbor of any class; 0 if there is none."""
    nearest = distances[:, :, 0].min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else 0.0


def laplacian_similarity(distances: FloatArray, bandwidth: float) -> FloatArray:
    """exp(−r / T), and 0 for a neighbor that does not exist (Eq. 1 of the paper has T = 1)."""
    return np.exp(-distances / bandwidth)


def log_evidence(distances: FloatArray, counts: Sequence[int], offset: float) -> FloatArray:
    """Minus the mean log distance to the k nearest rows of each class, for every k in `counts`.

    Parameters
    ----------
    distances : ndarray of shape (n, C, K), finite
    counts : sequence of int
        Numbers of neighbors, each at most K.
    offset : float
        Added to distances so that duplicates (distance 0) stay finite.

    Returns
    -------
    evidence : ndarray of shape (n, C, len(counts))

    Notes
    -----
    In d dimensions −d · log r_k is, up to a constant, the log of the k-nearest-neighbor density estimate of
    the class, so this is a log-likelihood whose weight the pool learns.
    """
    totals = np.cumsum(np.log(distances[:, :, : max(counts)] + offset), axis=2)
    return np.stack([-totals[:, :, k - 1] / k for k in counts], axis=2)
