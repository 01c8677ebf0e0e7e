"""Experts: each turns one kind of evidence into columns of log-evidence about the classes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import block_diag

from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.weights import centered
from neighboragg._store.objects import Stored

#: Groups of experts, as explanations name them.
CLASSIFIER, NEIGHBORS, OPINIONS = "classifier", "neighbors", "second opinions"


class Expert(Stored, ABC):
    """A block of columns of the evidence tensor; a new kind of evidence is one more class of this kind."""

    #: The group that explanations show it in.
    group: str
    #: The space that its distances or votes are from; "" for probabilities.
    space: str
    #: Whether its weights may fall below zero.
    signed: ClassVar[bool]

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the columns."""

    @property
    @abstractmethod
    def shares(self) -> list[float]:
        """Share of each column in the expected weight of the expert; zeros if none is expected."""

    def observe(self, evidence: Evidence) -> Any:
        """The statistics of some rows that determine the scale."""
        return None

    def learned(self, observed: Sequence[Any]) -> Self:
        """The same expert with the scale of all rows, from the statistics of its parts."""
        return self

    @abstractmethod
    def logs(self, evidence: Evidence) -> FloatArray:
        """Logarithms about each class, of shape (n, C, L)."""

    @cached_property
    def means(self) -> FloatArray:
        """The sums of logarithms that its columns are, of shape (L, len(names)); here each is a column."""
        return np.eye(len(self.names))


@dataclass(frozen=True)
class Probabilities(Expert):
    """The classifier, or another one: log(p + floor), the floor learned from the smallest p unless it is given."""

    name: str
    group: str = OPINIONS
    floor: float | None = None
    space: str = ""
    signed: ClassVar[bool] = False

    @property
    def names(self) -> list[str]:
        """Its own name."""
        return [self.name]

    @property
    def shares(self) -> list[float]:
        """All of the weight."""
        return [1.0]

    def observe(self, evidence: Evidence) -> float:
        """The smallest probability above zero."""
        proba = self._proba(evidence)
        return float(proba.min(initial=1.0, where=proba > 0))

    def learned(self, observed: Sequence[float]) -> Self:
        """With a floor of half the smallest probability."""
        return self if self.floor is not None else replace(self, floor=max(1e-6, 0.5 * min(observed)))

    def logs(self, evidence: Evidence) -> FloatArray:
        """log(p + floor)."""
        assert self.floor is not None
        return np.asarray(np.log(self._proba(evidence) + self.floor))[:, :, None]

    def _proba(self, evidence: Evidence) -> FloatArray:
        return evidence.proba if self.group == CLASSIFIER else evidence.opinions[self.name]


@dataclass(frozen=True)
class NeighborDistances(Expert):
    """Distances to the nearest rows of each class in one space, a column for each number of neighbors."""

    space: str
    counts: tuple[int, ...]
    expected: bool = True
    scale: "DistanceScale | None" = None
    group: str = NEIGHBORS
    signed: ClassVar[bool] = True

    @property
    def names(self) -> list[str]:
        """The number of neighbors, and the space."""
        return [f"{k} nearest ({self.space})" for k in self.counts]

    @property
    def shares(self) -> list[float]:
        """A quarter for the fewest neighbors, the rest for the most; none where a better space is expected to count."""
        shares = [0.0] * len(self.counts)
        if self.expected:
            shares[0], shares[-1] = (0.25, 0.75) if len(shares) > 1 else (1.0, 1.0)
        return shares

    def observe(self, evidence: Evidence) -> "Reach":
        """Statistics of the distances."""
        return Reach.of(evidence.distances[self.space])

    def learned(self, observed: Sequence["Reach"]) -> Self:
        """With the scale of the distances."""
        return replace(self, scale=DistanceScale.of_reaches(observed))

    def logs(self, evidence: Evidence) -> FloatArray:
        """Log distances to as many neighbors as any column needs."""
        assert self.scale is not None
        return self.scale.logs(evidence.distances[self.space], max(self.counts))

    @cached_property
    def means(self) -> FloatArray:
        """Minus the mean over the k nearest."""
        return mean_weights(self.counts)


@dataclass(frozen=True)
class Votes(Expert):
    """Labels of the nearest rows in one space: log(1 + weight of the class among them)."""

    space: str
    group: str = NEIGHBORS
    signed: ClassVar[bool] = True

    @property
    def names(self) -> list[str]:
        """The space."""
        return [f"votes ({self.space})"]

    @property
    def shares(self) -> list[float]:
        """None: votes have no expected weight."""
        return [0.0]

    def logs(self, evidence: Evidence) -> FloatArray:
        """log(1 + votes)."""
        return np.asarray(np.log1p(evidence.votes[self.space]))[:, :, None]


def learn_experts(experts: Sequence[Expert], observed: Iterable[Sequence[Any]]) -> list[Expert]:
    """The experts with scales, from their statistics of parts of the rows."""
    by_expert = zip(*observed, strict=True)
    return [expert.learned(seen) for expert, seen in zip(experts, by_expert, strict=True)]


def joined_logs(experts: Sequence[Expert], evidence: Evidence) -> FloatArray:
    """Logarithms of all experts, of shape (n, C, L)."""
    return np.concatenate([expert.logs(evidence) for expert in experts], axis=2)


def joined_means(experts: Sequence[Expert]) -> FloatArray:
    """From the logarithms of all experts to their columns, of shape (L, E)."""
    return np.asarray(block_diag(*(expert.means for expert in experts)))


def evidence_tensor(experts: Sequence[Expert], parts: Iterable[Evidence], n: int) -> FloatArray:
    """Log-evidence of all experts relative to its mean over classes, of shape (n, C, E)."""
    means, tensor, done = joined_means(experts), np.empty((0, 0, 0)), 0
    for evidence in parts:
        found = centered(joined_logs(experts, evidence) @ means)
        if len(found) == n:
            return found
        if not done:
            tensor = np.empty((n, *found.shape[1:]))
        tensor[done : done + len(found)] = found
        done += len(found)
    assert done == n
    return tensor


def prior_groups(experts: Sequence[Expert]) -> list[dict[int, float]]:
    """Columns that are expected to get weight, by position, with their share in the weight of their expert."""
    groups, start = [], 0
    for expert in experts:
        shares = expert.shares
        if any(shares):
            groups.append({start + i: share for i, share in enumerate(shares) if share})
        start += len(shares)
    return groups


@dataclass(frozen=True)
class DistanceScale(Stored):
    """The scale of some distances; made by :meth:`of`."""

    far: float
    offset: float

    @classmethod
    def of(cls, distances: FloatArray) -> "DistanceScale":
        """Learn from distances of shape (n, C, K), inf where a class has fewer than K rows."""
        return cls.of_reaches([Reach.of(distances)])

    @classmethod
    def of_reaches(cls, reaches: Sequence["Reach"]) -> "DistanceScale":
        """The same from statistics of parts of the rows."""
        largest = max(reach.largest for reach in reaches) or 1.0
        nearest = np.minimum(np.concatenate([reach.nearest for reach in reaches]), 2.0 * largest)
        return cls(2.0 * largest, 0.05 * float(np.median(nearest)) + 1e-6 * largest)

    def logs(self, distances: FloatArray, k: int) -> FloatArray:
        """Log distances to the k nearest, of shape (n, C, k), for distances with or without inf."""
        return np.asarray(np.log(self.filled(distances)[:, :, :k] + self.offset))

    def filled(self, distances: FloatArray) -> FloatArray:
        """Replace missing neighbors by the last one of the class; a class without rows is farther than all others."""
        if distances[:, :, -1].max(initial=0.0) < np.inf:  # they ascend
            return distances
        missing = np.isinf(distances)
        known = np.where(missing, 0.0, distances)
        nowhere = np.maximum(self.far, 2.0 * known.max(axis=(1, 2), keepdims=True))
        last = np.where(missing[:, :, :1], nowhere, known.max(axis=2, keepdims=True))
        return np.where(missing, last, distances)


@dataclass(frozen=True)
class Reach:
    """The statistics of a scale: the largest distance, and the distance of each row to its nearest neighbor."""

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
    """Median distance to the nearest neighbor of any class; 0 without neighbors."""
    nearest = distances[:, :, 0].min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else 0.0


def mean_weights(counts: Sequence[int]) -> FloatArray:
    """Weights of ascending neighbors in minus the mean over the k nearest, for every k in `counts`."""
    return np.array([np.where(np.arange(max(counts)) < k, -1.0 / k, 0.0) for k in counts]).T
