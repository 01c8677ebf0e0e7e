"""From class-wise distances to log-evidence: neighbors that do not exist, duplicates, how many neighbors count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neighboragg._core.types import FloatArray
from neighboragg._store.objects import Stored


@dataclass(frozen=True)
class DistanceScale(Stored):
    """What counts as far and as near among some distances; made by :meth:`of`."""

    far: float
    offset: float

    @classmethod
    def of(cls, distances: FloatArray) -> "DistanceScale":
        """Learn from distances of shape (n, C, K), inf where a class has fewer than K rows."""
        return cls.of_reaches([Reach.of(distances)])

    @classmethod
    def of_reaches(cls, reaches: Sequence["Reach"]) -> "DistanceScale":
        """The same from what is known of the distances of some rows at a time."""
        largest = max(reach.largest for reach in reaches) or 1.0
        nearest = np.minimum(np.concatenate([reach.nearest for reach in reaches]), 2.0 * largest)
        return cls(2.0 * largest, 0.05 * float(np.median(nearest)) + 1e-6 * largest)

    def evidence(self, distances: FloatArray, counts: Sequence[int]) -> FloatArray:
        """Log-evidence (see :func:`log_evidence`) of shape (n, C, len(counts)), for distances with or without inf."""
        return log_evidence(self.filled(distances), counts, self.offset)

    def filled(self, distances: FloatArray) -> FloatArray:
        """Missing neighbors as far as the last there is of the class; a class without rows farther than all others."""
        if distances[:, :, -1].max(initial=0.0) < np.inf:  # they ascend
            return distances
        missing = np.isinf(distances)
        known = np.where(missing, 0.0, distances)
        nowhere = np.maximum(self.far, 2.0 * known.max(axis=(1, 2), keepdims=True))
        last = np.where(missing[:, :, :1], nowhere, known.max(axis=2, keepdims=True))
        return np.where(missing, last, distances)


@dataclass(frozen=True)
class Reach:
    """What a scale is learned from: the largest distance, and that of each row to its nearest neighbor."""

    largest: float
    nearest: FloatArray

    @classmethod
    def of(cls, distances: FloatArray) -> "Reach":
        """Of distances of shape (n, C, K), inf where a class has fewer than K rows."""
        largest = float(distances.max(initial=0.0, where=np.isfinite(distances)))
        return cls(largest, distances[:, :, 0].min(axis=1))


def usual_counts(available: int) -> list[int]:
    """Numbers of neighbors that are experts by default: 1, a quarter of those available, and all."""
    return sorted({1, max(1, available // 4), available})


def nearest_distance(distances: FloatArray) -> float:
    """Median distance to the nearest neighbor of any class; 0 if there is none."""
    nearest = distances[:, :, 0].min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else 0.0


def log_evidence(distances: FloatArray, counts: Sequence[int], offset: float) -> FloatArray:
    """Minus the mean log distance to the k nearest rows of each class, for every k in `counts`."""
    totals = np.log(distances[:, :, : max(counts)] + offset).cumsum(axis=2)
    return totals.take([k - 1 for k in counts], axis=2) / [-k for k in counts]
